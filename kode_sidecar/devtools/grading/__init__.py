"""A judge for clients: rules with ids, and what a recording says of them."""

from kode_sidecar.devtools.grading.rules import RULES, grade, verdicts
from kode_sidecar.devtools.grading.talk import Talk

__all__ = ["RULES", "Talk", "grade", "verdicts"]
