"""The alphaCMRU at epsilon = 0, whose state is replaced by a value on a grid: a thermometer register."""
