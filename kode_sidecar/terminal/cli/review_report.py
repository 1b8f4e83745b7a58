"""One report of reviewed folders, as text, JSON, SARIF, Markdown or annotations of GitHub."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from kode_sidecar import __version__
from kode_sidecar.agent.reviews import ReviewRecord
from kode_sidecar.core.domain.finding import QuotedPlace, ReviewFinding, Severity, open_findings
from kode_sidecar.core.text.shown_text import fence_of, one_line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Mapping[Severity, str] = {
    "error": "error",
    "warning": "warning",
    "info": "note",
    "nit": "note",
}
_ANNOTATIONS: Mapping[Severity, str] = {**_LEVELS, "info": "notice", "nit": "notice"}
_MOST_MISSED = 20


@dataclass(frozen=True)
class ReviewedFolder:
    """A folder and its review. `at` is how paths in it are named from where the user is."""

    root: Path
    record: ReviewRecord

    @property
    def findings(self) -> Sequence[ReviewFinding]:
        """The findings to show, the worst first."""
        return open_findings(self.record.findings)

    def at(self, path: str) -> str:
        """Return the path from the present folder, absolute where it is not below that."""
        file = self.root / path
        here = Path.cwd()
        return (file.relative_to(here) if file.is_relative_to(here) else file).as_posix()

    def uri(self, path: str) -> str:
        """Return the path as a URI reference."""
        file = Path(self.at(path))
        return file.as_uri() if file.is_absolute() else quote(file.as_posix())


Folders = Sequence[ReviewedFolder]


def _text(folders: Folders) -> Iterator[str]:
    for folder in folders:
        for one in folder.findings:
            place = f"{folder.at(one.path)}:{one.start_line}"
            yield f"{place}: {one.severity}: {one_line(one.title)} [{one_line(one.category)}]"
            # Behind a bar: runners of CI take a line that begins with `::` for a command.
            yield from (f"  | {line}" for line in one.explanation.splitlines())
            yield from (f"  > {line}" for line in one.suggestion.splitlines())
        for missed in folder.record.not_reviewed:
            yield f"not looked at: {one_line(missed)}"


def _json(folders: Folders) -> Iterator[str]:
    reviews = [
        {
            "root": str(folder.root),
            "summary": folder.record.summary,
            "findings": msgspec.to_builtins(folder.findings),
            "notReviewed": folder.record.not_reviewed,
        }
        for folder in folders
    ]
    yield json.dumps({"reviews": reviews}, ensure_ascii=False)


def _markdown(folders: Folders) -> Iterator[str]:
    for folder in folders:
        yield f"# Code review of {one_line(folder.root.name)}"
        yield ""
        yield one_line(folder.record.summary)
        for one in folder.findings:
            yield from ("", f"## {one.severity}: {one_line(one.title)}", "")
            yield f"`{folder.at(one.path)}:{one.start_line}` · {one_line(one.category)}"
            fence = fence_of(one.quote)
            yield from ("", fence, one.quote, fence, "", one.explanation)
            if one.suggestion:
                yield from ("", one.suggestion)
        if folder.record.not_reviewed:
            yield from ("", "## Not looked at", "")
            yield from (f"- {one_line(one)}" for one in folder.record.not_reviewed)
        yield ""


def _github(folders: Folders) -> Iterator[str]:
    for folder in folders:
        for one in folder.findings:
            place = f"file={_property(folder.at(one.path))},line={one.start_line}"
            title = f"endLine={one.end_line},title={_property(one.title)}"
            yield f"::{_ANNOTATIONS[one.severity]} {place},{title}::{_message(one.explanation)}"
        if missed := folder.record.not_reviewed:
            listed = _message("\n".join(missed[:_MOST_MISSED]))
            yield f"::notice title=Not looked at ({len(missed)})::{listed}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(folders: Folders) -> Iterator[str]:
    runs = [_run(folder) for folder in folders]
    yield json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}, ensure_ascii=False)


def _run(folder: ReviewedFolder) -> dict[str, Any]:
    rules = list(dict.fromkeys(one.category for one in folder.findings))
    driver = {
        "name": "kode-sidecar",
        "version": __version__,
        "rules": [{"id": rule} for rule in rules],
    }
    missed = [
        {"level": "note", "message": {"text": f"Not looked at: {one}"}}
        for one in folder.record.not_reviewed
    ]
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"kode-sidecar/{folder.root.name}"},
        "results": [_result(folder, one, rules) for one in folder.findings],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": missed}],
    }


def _result(folder: ReviewedFolder, one: ReviewFinding, rules: Sequence[str]) -> dict[str, Any]:
    related = [
        {"id": number, "physicalLocation": _location(folder, place)}
        for number, place in enumerate(one.evidence)
    ]
    return {
        "ruleId": one.category,
        "ruleIndex": rules.index(one.category),
        "level": _LEVELS[one.severity],
        "message": {"text": f"{one.title}\n\n{one.explanation}"},
        "locations": [{"physicalLocation": _location(folder, one)}],
        **({"relatedLocations": related} if related else {}),
    }


def _location(folder: ReviewedFolder, place: ReviewFinding | QuotedPlace) -> dict[str, Any]:
    return {
        "artifactLocation": {"uri": folder.uri(place.path)},
        "region": {"startLine": place.start_line, "endLine": place.end_line},
    }


FORMATS: Mapping[str, Callable[[Folders], Iterator[str]]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "markdown": _markdown,
    "github": _github,
}
"""What prints the report, by the value of `--format`."""
