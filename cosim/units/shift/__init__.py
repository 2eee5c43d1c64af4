"""The shift cell: one bit, one frame later."""
