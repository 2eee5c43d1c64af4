"""The unit at epsilon = 1, whose state is added to: a ladder of Schmitt triggers behind a quantiser."""
