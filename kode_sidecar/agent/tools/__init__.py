"""The tools on offer; one file = params struct and run."""
