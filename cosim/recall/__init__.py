"""Recall: sequences kept in a state as long as they are, in software, and as bits in a circuit."""
