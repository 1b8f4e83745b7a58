"""Checks a client's recording against the rules of the protocol."""

from kode_sidecar.devtools.grading.report import GradeOptions, grade
from kode_sidecar.devtools.grading.rules import RULES, verdicts
from kode_sidecar.devtools.grading.talk import Talk

__all__ = ["RULES", "GradeOptions", "Talk", "grade", "verdicts"]
