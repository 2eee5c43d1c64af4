"""Models and tables of the papers, which stay software."""
