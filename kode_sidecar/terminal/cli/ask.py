"""`kode-sidecar ask`: one question, one answer, proposed edits as a diff."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kode_sidecar.core.settings import client_agent
from kode_sidecar.core.text.shown_text import one_line, visible, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.ide_chat import ChatResult, Prompt, converse
from kode_sidecar.servers.boot.provider_setup import usable_model
from kode_sidecar.terminal.cli.inquiry import latest_session, whole_id
from kode_sidecar.terminal.cli.setup import settings_with_key

_INCOMPLETE = 3
_REVIEW = "review.updated"
_MOST_ATTACHED = 2_000_000


def ask(options: argparse.Namespace) -> int:
    """Ask, and print the answer as it grows; return 3 if it is incomplete.

    Raises KodeError.
    """
    root = (options.root or Path.cwd()).absolute()
    session = options.session and whole_id(options)
    if options.go_on:
        session = latest_session(options)
    loaded = settings_with_key(options.model, None)
    reviews: list[dict[str, Any]] = []
    prompt = Prompt(
        _with_attachment(_question(options)),
        session or None,
        meta={"projectRoot": str(root)},
        model=usable_model(loaded, options.model),
        agent=options.agent or client_agent(loaded),
        mode=options.mode,
        verb=options.verb or None,
        on_text=None if options.json else _print,
        on_event=lambda event: reviews.append(event) if event["type"] == _REVIEW else None,
    )
    result = asyncio.run(converse(prompt))
    if options.json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n")
        _print_findings(reviews[-1:])
        _print_edits(result)
    if result["stop_reason"] == "end_turn":
        return 0
    sys.stderr.write(f"kode-sidecar: the answer is not whole: {result['stop_reason']}\n")
    return _INCOMPLETE


def _question(options: argparse.Namespace) -> str:
    words = " ".join(options.prompt)
    if options.verb:
        return f"/{options.verb} {words}".rstrip()
    if not words:
        raise KodeError("InvalidParams", "Nothing is asked: give a PROMPT or --verb NAME.")
    return words


def _print(text: str) -> None:
    shown = visible(text, part=True) if sys.stdout.isatty() else without_controls(text)
    sys.stdout.write(shown)
    sys.stdout.flush()


def _print_findings(reviews: Sequence[dict[str, Any]]) -> None:
    """Print a line for each open finding of a review."""
    for one in (one for review in reviews for one in review["findings"]):
        if one["state"] == "open" and "range" in one:
            place = f"{one['path']}:{one['range']['start']['line'] + 1}"
            line = one_line(f"{place}: {one['severity']}: {one['title']} [{one['findingId']}]")
            sys.stdout.write(f"{visible(line) if sys.stdout.isatty() else line}\n")


def _print_edits(result: ChatResult) -> None:
    """Print the diff of each change set once."""
    for diff in dict.fromkeys(edit["diff"] for edit in result["proposed_edits"]):
        sys.stdout.write("\n" + (visible(diff) if sys.stdout.isatty() else without_controls(diff)))


def _with_attachment(question: str) -> str:
    """Return the question with piped input below it, cut if it is too long."""
    if sys.stdin is None or sys.stdin.isatty():
        return question
    piped = sys.stdin.read(_MOST_ATTACHED + 1)
    if not piped.strip():
        return question
    note = "" if len(piped) <= _MOST_ATTACHED else f" (the first {_MOST_ATTACHED:,} characters)"
    fence = "```" if "```" not in piped else "~~~~~~"
    return f"{question}\n\nStandard input{note}:\n{fence}\n{piped[:_MOST_ATTACHED]}\n{fence}"
