"""Checks a client's recording against the rules of the protocol."""

from kode_sidecar.devtools.grading.rules import RULES, grade, verdicts
from kode_sidecar.devtools.grading.talk import Talk

__all__ = ["RULES", "Talk", "grade", "verdicts"]
