"""Backbones that are cut into circuits and software: compiled and compared partition by partition."""
