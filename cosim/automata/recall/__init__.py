"""Recall of a symbol that was seen long before."""
