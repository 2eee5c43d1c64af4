"""Two finished runs held against each other: read, paired, and what differs."""
