"""The exception for a circuit that the batched engine cannot run, so that another engine must."""


class Unsupported(Exception):
    """The sentence says what there is no model for."""
