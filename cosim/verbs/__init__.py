"""The verbs of cosim: one folder for each command, with its options, its computation and the page of its results."""
