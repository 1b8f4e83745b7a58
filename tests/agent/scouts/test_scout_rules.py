"""The rules of a scout, row by row (D3, D4, D6)."""

import pytest

from kode_sidecar.agent.scouts.contracts import ScoutLimits
from kode_sidecar.agent.scouts.scout_rules import ScoutUse, called, check, must_report, succeeded

LIMITS = ScoutLimits()
FRESH = ScoutUse()
READ = ScoutUse(calls=1, reads=1)
LAST_CALL = ScoutUse(calls=99, reads=1)
NO_CALLS = ScoutUse(calls=100, reads=1)
NO_CALLS_NO_READS = ScoutUse(calls=100)
FULL = ScoutUse(calls=3, reads=1, prompt_tokens=160_000)
REPORTED = ScoutUse(calls=3, reads=1, reported=True)


@pytest.mark.parametrize(
    ("use", "tool", "elapsed", "verdict"),
    [
        (FRESH, "read_file", 0.0, None),
        (FRESH, "search_code", 0.0, None),
        (FRESH, "report_findings", 0.0, "read_first"),
        (ScoutUse(calls=9), "report_findings", 0.0, "read_first"),  # searching is not reading
        (READ, "report_findings", 0.0, None),
        (LAST_CALL, "list_files", 0.0, None),  # the hundredth
        (NO_CALLS, "list_files", 0.0, "report_now"),  # the hundred-and-first
        (NO_CALLS, "read_file", 0.0, "report_now"),
        (NO_CALLS, "report_findings", 0.0, None),
        (NO_CALLS_NO_READS, "report_findings", 0.0, None),  # it cannot read any more
        (READ, "read_file", 569.9, None),
        (READ, "read_file", 570.0, "report_now"),  # 9½ minutes
        (READ, "report_findings", 599.0, None),
        (FRESH, "report_findings", 570.0, None),
        (FULL, "read_file", 0.0, "report_now"),
        (FULL, "report_findings", 0.0, None),
        (REPORTED, "read_file", 0.0, "reported"),
        (REPORTED, "report_findings", 0.0, "reported"),
    ],
)
def test_what_may_run(use: ScoutUse, tool: str, elapsed: float, verdict: str | None) -> None:
    assert check(use, tool, elapsed, LIMITS) == verdict


def test_the_limits_are_those_of_the_requirements() -> None:
    assert (LIMITS.at_once, LIMITS.calls) == (5, 100)
    assert (LIMITS.report_after, LIMITS.seconds) == (570, 600)


def test_a_report_counts_as_no_call_and_only_success_counts_as_reading() -> None:
    use = called(called(FRESH, "read_file"), "report_findings")
    assert (use.calls, use.reads, use.reported) == (1, 0, False)
    use = succeeded(succeeded(use, "search_code"), "read_file")
    assert (use.calls, use.reads) == (1, 1)
    assert succeeded(use, "report_findings").reported


def test_a_hundred_calls_run_and_no_more() -> None:
    use, ran = FRESH, 0
    while check(use, "read_file", 0.0, LIMITS) is None:
        use, ran = succeeded(called(use, "read_file"), "read_file"), ran + 1
    assert ran == 100
    assert must_report(use, 0.0, LIMITS)
    assert check(use, "report_findings", 0.0, LIMITS) is None
