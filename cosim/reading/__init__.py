"""Readers of files from outside, within limits: every such file passes through here."""
