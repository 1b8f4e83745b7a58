"""Is a quote where a finding says it is? Sans-IO."""

from collections.abc import Callable

from kode_sidecar.errors import KodeError
from kode_sidecar.scouts.contracts import CheckedFinding, Evidence, Finding
from kode_sidecar.text.line_diff import split_lines
from kode_sidecar.text.shown_text import strip_line_numbers


def checked(finding: Finding, text_of: Callable[[str], str]) -> CheckedFinding:
    """The finding with the verdict on its evidence; `text_of` raises KodeError."""
    try:
        text = text_of(finding.path)
    except KodeError:
        text = ""
    evidence: Evidence = "verified" if is_quoted(finding, text) else "unverified"
    return CheckedFinding(
        claim=finding.claim,
        path=finding.path,
        start_line=finding.start_line,
        end_line=finding.end_line,
        quote=finding.quote,
        evidence=evidence,
    )


def is_quoted(finding: Finding, text: str) -> bool:
    """Do the cited lines of `text` hold the quote?

    Blanks count as one, whatever their number: models trim and re-indent what they copy. An empty
    quote is no evidence.
    """
    lines = split_lines(text)[finding.start_line - 1 : finding.end_line]
    cited = _words("".join(lines))
    quotes = (finding.quote, strip_line_numbers(finding.quote) or "")
    return any(words and words in cited for words in map(_words, quotes))


def _words(text: str) -> str:
    return " ".join(text.split())
