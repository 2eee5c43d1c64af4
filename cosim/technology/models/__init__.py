"""Families of transistor models, one file each: how cards are read, how simulators write them, how devices deviate."""
