"""The agent: what it sees, may do, does and remembers."""
