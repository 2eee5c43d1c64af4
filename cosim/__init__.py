"""cosim: from a trained recurrent network with hysteresis to transistors, and back to its accuracy."""

__version__ = "0.1.0"
