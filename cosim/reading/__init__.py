"""What others wrote, read within limits: every file that comes from outside passes through here."""
