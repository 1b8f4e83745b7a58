"""Every byte written to disk."""
