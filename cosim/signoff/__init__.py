"""Sign-off: one plan of limits, one check a question, one verdict."""
