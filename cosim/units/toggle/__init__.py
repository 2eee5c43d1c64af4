"""The unit at epsilon = -1, whose state is turned over: a toggle."""
