"""The findings of a session on disk, and where they are in the text now.

Beside each finding the text is saved at which its lines were right, so they can be found again
after any edit, also in a later process. Nothing is held in memory.
"""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.core.domain.finding import FindingState, ReviewFinding
from kode_sidecar.core.text.moved_lines import Span, lines_moved
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_read, replace_file
from kode_sidecar.infrastructure.records.json_record import encode_json

REVIEW_FILE = "review.json"


class ReviewRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the reviews of a session came to. `texts` are those at which the lines are right.

    `not_reviewed` names what the latest review did not look at, with the reason; `missed` of them
    are not left out by rule, such as generated files. `request` is what it was to review.
    """

    findings: tuple[ReviewFinding, ...] = ()
    texts: dict[str, str] = {}
    not_reviewed: tuple[str, ...] = ()
    missed: int = 0
    summary: str = ""
    request: str = ""


def read_review(folder: Path) -> ReviewRecord | None:
    """Return the record in a session's folder, None if nothing was reviewed there.

    Raises KodeError `Storage`.
    """
    try:
        return msgspec.json.decode((folder / REVIEW_FILE).read_bytes(), type=ReviewRecord)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise not_read(REVIEW_FILE, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KodeError("Storage", f"{REVIEW_FILE} is damaged: {error}") from None


def save_review(folder: Path, record: ReviewRecord) -> None:
    """Write the record. Raises KodeError `Storage`."""
    replace_file(folder / REVIEW_FILE, encode_json(record), durable=False)


class LocatedFinding(NamedTuple):
    """A finding, and the text at which its lines are right; None if that is not known."""

    finding: ReviewFinding
    text: str | None


def at_present(
    found: Iterable[LocatedFinding], text_of: Callable[[str], str]
) -> tuple[list[ReviewFinding], dict[str, str]]:
    """Return the findings with their lines in the texts as they are now, and these texts.

    `text_of` may raise KodeError: the file is then gone, and so are its findings.
    """
    texts: dict[str, str] = {}
    moved: list[ReviewFinding] = []

    @cache
    def move(path: str, old: str | None) -> Callable[[Span], Span | None] | None:
        try:
            texts[path] = text_of(path)
        except KodeError:
            return None
        return None if old is None else lines_moved(old, texts[path])

    for one, text in found:
        to_now = None if one.gone else move(one.path, text)
        span = None if to_now is None else to_now((one.start_line, one.end_line))
        if span is None:
            moved.append(replace(one, gone=True))
        else:
            moved.append(replace(one, start_line=span[0], end_line=span[1]))
    return moved, texts


def followed(record: ReviewRecord, text_of: Callable[[str], str]) -> ReviewRecord:
    """Return the record with the lines of each finding in the text as it is now."""
    found = (LocatedFinding(one, record.texts.get(one.path)) for one in record.findings)
    findings, texts = at_present(found, text_of)
    return replace(record, findings=tuple(findings), texts=texts)


def with_decision(
    record: ReviewRecord, finding_id: str, state: FindingState, reason: str
) -> ReviewRecord:
    """Return the record after the user's word on a finding. Raises KodeError `InvalidArguments`."""
    if all(one.id != finding_id for one in record.findings):
        known = ", ".join(one.id for one in record.findings) or "there are none"
        raise KodeError("InvalidArguments", f"There is no finding {finding_id}; known: {known}.")
    findings = [
        replace(one, state=state, reason=reason) if one.id == finding_id else one
        for one in record.findings
    ]
    return replace(record, findings=tuple(findings))
