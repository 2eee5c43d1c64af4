"""Tables of the papers beside the same trained here: what is trained, with which settings, and what differs."""
