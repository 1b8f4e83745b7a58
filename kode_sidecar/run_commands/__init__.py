"""The commands `run` and `runs`: a governed run from a terminal or a scheduler."""

from kode_sidecar.run_commands.command_line import run_or_runs

__all__ = ["run_or_runs"]
