"""The commands `run` and `runs`: a governed run from a terminal or a scheduler."""
