"""Command `cosim report`: write one page of what verbs found about a network."""
