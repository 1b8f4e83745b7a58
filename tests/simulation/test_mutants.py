"""The faults of `dev.py mutate` are about code that is there."""

from pathlib import Path

import pytest

from simulation import mutant_rules, mutants
from tests.support.program import ROOT


def test_each_fault_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = [
        mutant.name
        for mutant in (*mutants.KNOWN, *mutants.BY_HAND)
        if mutant.old not in (ROOT / mutants.PACKAGE / mutant.file).read_text(encoding="utf-8")
    ]
    assert gone == []
    assert len({mutant.name for mutant in mutants.BY_HAND}) == len(mutants.BY_HAND) > 50


def test_generated_faults_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    drawn = mutant_rules.generated(60, seed=1)
    assert drawn == mutant_rules.generated(60, seed=1)
    for mutant in drawn:
        text = (Path(mutants.PACKAGE) / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
