"""The tools for the model; one file holds a params struct and its `run`."""
