"""The version of cosim, for files and reports that state by which version a result was made."""

__version__ = "0.2.0"
