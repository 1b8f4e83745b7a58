"""Answers `initialize`, loads the rest on a thread, and wires everything together."""
