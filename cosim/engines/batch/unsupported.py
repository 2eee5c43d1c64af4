"""What the engine cannot run, so that another must."""


class Unsupported(Exception):
    """The sentence says what there is no model for."""
