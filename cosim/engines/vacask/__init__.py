"""VACASK as a process of its own, a second simulator of the same circuits."""
