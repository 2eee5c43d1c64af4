"""Automata: regular languages as tables, and tables as networks with exact state."""
