"""The version of cosim, for whatever keeps it with a result."""

__version__ = "0.2.0"
