"""Quotes against the cited lines, and reports against their budget."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.scouts import as_json
from kode_sidecar.agent.scouts.contracts import CheckedFinding, ExploreReport, Finding
from kode_sidecar.agent.scouts.report import checked, fitted, is_quoted
from kode_sidecar.errors import KodeError

TEXT = "import os\n\n\ndef greet(name):\n    return 'hello ' + name\n\n# 茶铺 🍵\n"


def finding(start: int, end: int, quote: str) -> Finding:
    return Finding(claim="c", path="a.py", start_line=start, end_line=end, quote=quote)


@pytest.mark.parametrize(
    ("start", "end", "quote", "found"),
    [
        (4, 5, "def greet(name):\n    return 'hello ' + name", True),
        (4, 5, "def greet(name):\r\n\treturn 'hello ' + name\r\n", True),  # blanks are blanks
        (4, 5, "     4\tdef greet(name):\n     5\t    return 'hello ' + name", True),
        (4, 4, "def greet", True),  # a part of the line
        (7, 7, "茶铺 🍵", True),
        (4, 4, "return 'hello ' + name", False),  # one line off
        (5, 4, "return 'hello ' + name", False),  # the wrong way round
        (4, 5, "def greet(name): return 'hi'", False),
        (4, 5, "DEF GREET", False),
        (4, 5, " \n ", False),  # nothing is no evidence
        (100, 200, "import os", False),
        (1, 1_000_000, "import os", True),
    ],
)
def test_a_quote_is_at_its_lines_or_not(start: int, end: int, quote: str, found: bool) -> None:
    assert is_quoted(finding(start, end, quote), TEXT) is found


def test_a_file_that_cannot_be_read_verifies_nothing() -> None:
    def denied(path: str) -> str:
        raise KodeError("Denied", f"{path} holds credentials")

    assert checked(finding(1, 1, "import os"), lambda _: TEXT).evidence == "verified"
    assert checked(finding(1, 1, "import os"), denied).evidence == "unverified"


def found(quote: str, claim: str = "c") -> CheckedFinding:
    return CheckedFinding(
        claim=claim, path="p", start_line=1, end_line=1, quote=quote, evidence="verified"
    )


texts = st.text(max_size=3_000)


@given(
    summary=texts,
    note=texts,
    title=st.text(max_size=120),
    findings=st.lists(texts.map(found), max_size=20),
    questions=st.lists(texts, max_size=5),
)
def test_no_report_is_beyond_its_budget(
    summary: str, note: str, title: str, findings: list[CheckedFinding], questions: list[str]
) -> None:
    report = ExploreReport(
        title=title,
        state="done",
        note=note,
        summary=summary,
        findings=tuple(findings),
        open_questions=tuple(questions),
    )
    short = fitted(report, 2_000)
    assert len(msgspec.json.encode(short)) <= 2_000
    assert len(short.findings) + short.left_out == len(findings)
    assert short.findings == report.findings[: len(short.findings)]  # the first are kept
    if len(msgspec.json.encode(report)) <= 2_000:
        assert short == report


def test_reports_are_a_json_array_in_order() -> None:
    reports = [ExploreReport(title=title, state="done") for title in ("b", "茶", "a")]
    assert msgspec.json.decode(as_json(reports), type=list[ExploreReport]) == reports
    assert as_json(reports).count("\n") == 4
