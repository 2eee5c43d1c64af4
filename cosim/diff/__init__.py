"""Two finished runs compared: read, paired, and what differs."""
