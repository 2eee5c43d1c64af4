"""The unit at epsilon = 0, whose state is replaced: a Schmitt trigger."""
