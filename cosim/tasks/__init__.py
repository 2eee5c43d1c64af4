"""Tasks: each function returns the same frozen Task, from a generator, a package or files that the user names."""
