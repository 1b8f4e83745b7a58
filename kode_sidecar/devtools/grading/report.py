"""`kode-sidecar grade`: reports what recordings say of a client, for people, programs and CI."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from kode_sidecar.core.text.shown_text import visible
from kode_sidecar.devtools.grading.document_rules import Fault
from kode_sidecar.devtools.grading.rules import RULES, GradingRule, GradingVerdict, verdicts
from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording import FrameIn, FrameOut, isolate, read_recording
from kode_sidecar.errors import KodeError

RIGHT, FAULTY, UNKNOWN = 0, 1, 2
_MARKS = {"kept": "ok    ", "broken": "BROKEN", "unseen": "  -   "}
_MOST_SHOWN = 2_000


@dataclass(frozen=True)
class GradeOptions:
    """`required`: rules that the recordings must have an occasion for, and that must be kept.

    `show` adds the message of each finding; `junit` is a file for CI.
    """

    json: bool = False
    show: bool = False
    junit: Path | None = None
    required: Sequence[str] = ()


@dataclass(frozen=True)
class GradedRecording:
    """A recording, its verdicts, and its messages by line."""

    file: Path
    rules: Mapping[str, GradingRule[Any]]
    verdicts: Sequence[GradingVerdict]
    frames: Mapping[int, str]


def grade(
    files: Sequence[Path],
    options: GradeOptions = GradeOptions(),
    rules: Mapping[str, GradingRule[Any]] = RULES,
    judge: Callable[[Path], GradedRecording] | None = None,
) -> int:
    """Print the verdicts and return the exit code: 0 right, 1 faulty, 2 unreadable.

    A rule is required of all recordings together: one of them must have an occasion for it.
    `judge` reads and judges a recording of another protocol by its `rules`.
    """
    isolate()
    try:
        _require_known(options.required, rules)
        graded = [(judge or _graded)(file) for file in files]
        if options.junit is not None:
            _write_junit(graded, options.junit)
    except KodeError as error:
        sys.stderr.write(f"kode-sidecar grade: {visible(error.message)}\n")
        return UNKNOWN
    for one in graded:
        sys.stdout.write(_as_json(one) if options.json else _as_text(one, show=options.show))
    states = {(verdict.rule, verdict.state) for one in graded for verdict in one.verdicts}
    missing = [rule for rule in options.required if not states & {(rule, "kept"), (rule, "broken")}]
    for rule in missing:
        text = f"`{rule}` is required, and no recording has an occasion for it: {rules[rule].about}"
        sys.stderr.write(f"kode-sidecar grade: {text}\n")
    return FAULTY if missing or any(state == "broken" for _, state in states) else RIGHT


def _require_known(required: Sequence[str], rules: Mapping[str, GradingRule[Any]]) -> None:
    unknown = [rule for rule in required if rule not in rules]
    if unknown:
        text = f"There is no rule `{unknown[0]}`. The rules are {', '.join(rules)}."
        raise KodeError("ConfigInvalid", text)


def _graded(file: Path) -> GradedRecording:
    recording = read_recording(file)
    frames = {
        number: (isinstance(line, FrameIn) and line.text) or bytes(line.frame).decode()
        for number, line in enumerate(recording.lines, 1)
        if isinstance(line, FrameIn | FrameOut)
    }
    return GradedRecording(file, RULES, verdicts(Talk(recording)), frames)


def expected(graded: GradedRecording, rule: str, fault: Fault) -> str:
    """Return what should have come instead."""
    return fault.expected or graded.rules[rule].about


def _as_json(graded: GradedRecording) -> str:
    found: list[dict[str, Any]] = []
    for one in graded.verdicts:
        faults = [
            {
                "line": fault.line,
                "text": fault.text,
                "expected": expected(graded, one.rule, fault),
                "frame": graded.frames.get(fault.line),
            }
            for fault in one.faults
        ]
        found.append(
            {"rule": one.rule, "state": one.state} | ({"faults": faults} if faults else {})
        )
    report = {"recording": str(graded.file), "verdicts": found}
    return msgspec.json.encode(report).decode() + "\n"


def _as_text(graded: GradedRecording, *, show: bool) -> str:
    width = max(map(len, graded.rules))
    lines = [str(graded.file)]
    for one in graded.verdicts:
        lines.append(f"  {_MARKS[one.state]} {one.rule:<{width}}  {graded.rules[one.rule].about}")
        for fault in one.faults:
            lines.append(f"         line {fault.line}: {fault.text}")
            if fault.expected:
                lines.append(f"         expected: {fault.expected}")
            if show:
                lines.append(f"         {graded.frames.get(fault.line, '')[:_MOST_SHOWN]}")
    states = [one.state for one in graded.verdicts]
    lines.append("  " + ", ".join(f"{states.count(state)} {state}" for state in _MARKS))
    return "\n".join(lines) + "\n"


def _write_junit(graded: Sequence[GradedRecording], file: Path) -> None:
    """Write a test suite for each recording, a test for each rule. Raises KodeError `Storage`."""
    top = ElementTree.Element("testsuites", name="kode-sidecar grade")
    for recording in graded:
        states = [one.state for one in recording.verdicts]
        counts = {"failures": states.count("broken"), "skipped": states.count("unseen")}
        attributes = {"name": str(recording.file), "tests": str(len(states))}
        attributes |= {name: str(count) for name, count in counts.items()}
        suite = ElementTree.SubElement(top, "testsuite", attributes)
        for one in recording.verdicts:
            case = ElementTree.SubElement(suite, "testcase", name=one.rule, classname="protocol")
            if one.state == "unseen":
                ElementTree.SubElement(case, "skipped")
            for fault in one.faults:
                failure = ElementTree.SubElement(case, "failure", message=_xml_text(fault.text))
                frame = recording.frames.get(fault.line, "")[:_MOST_SHOWN]
                text = (
                    f"expected: {expected(recording, one.rule, fault)}\nline {fault.line}: {frame}"
                )
                failure.text = _xml_text(text)
    try:
        ElementTree.ElementTree(top).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise KodeError("Storage", f"Cannot write to {file}: {error.strerror}.") from None


def _xml_text(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return "".join(
        char if char >= " " or char in "\t\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
