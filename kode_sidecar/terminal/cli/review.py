"""`kode-sidecar review`: a code review without an editor, for people, scripts and CI."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from kode_sidecar.agent.reviews import ReviewRecord, read_review, review_request
from kode_sidecar.core.domain.finding import SEVERITIES
from kode_sidecar.core.settings import LoadedSettings, load_settings
from kode_sidecar.core.text.shown_text import one_line, visible, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.ide_chat import Prompt, converse
from kode_sidecar.infrastructure.records.conversation_files import CONVERSATIONS_FOLDER
from kode_sidecar.servers.boot.provider_setup import usable_model
from kode_sidecar.terminal.cli.review_report import FORMATS, ReviewedFolder

_FAILED, _INCOMPLETE, _FOUND = 1, 3, 5


def review_command(options: argparse.Namespace) -> int:
    """Review each folder, and print one report.

    Returns 1 if a folder could not be reviewed, else 5 if a finding is as severe as `--fail-on`,
    else 3 if a file was not looked at. Raises KodeError if no folder could be reviewed.
    """
    loaded = load_settings(os.environ)
    reviewed: list[ReviewedFolder] = []
    failures: list[KodeError] = []
    for folder in dict.fromkeys(options.root or [Path.cwd()]):
        root = Path(os.path.abspath(folder))
        try:
            record = asyncio.run(_reviewed(options, root, loaded))
        except KodeError as error:
            failures.append(error)
            _say(f"{root}: {error.message}")
        else:
            reviewed.append(ReviewedFolder(root, record))
            _say(f"{root}: {record.summary}")
    if not reviewed:
        raise failures[0]
    for line in FORMATS[options.format](reviewed):
        sys.stdout.write(f"{visible(line) if sys.stdout.isatty() else without_controls(line)}\n")
    return _FAILED if failures else _code(reviewed, options.fail_on)


def _code(reviewed: list[ReviewedFolder], fail_on: str | None) -> int:
    if fail_on is not None:
        severe = SEVERITIES[: [*SEVERITIES].index(fail_on) + 1]
        if any(one.severity in severe for folder in reviewed for one in folder.findings):
            return _FOUND
    return _INCOMPLETE if any(folder.record.missed for folder in reviewed) else 0


async def _reviewed(
    options: argparse.Namespace, root: Path, loaded: LoadedSettings
) -> ReviewRecord:
    if not root.is_dir():
        raise KodeError("InvalidParams", f"There is no folder {root}.")
    wanted = review_request(**_wanted(options))
    result = await converse(
        Prompt(
            f"Review these changes: call `review_changes` once with exactly {wanted}, "
            "then sum up in a sentence.",
            meta={"projectRoot": str(root)},
            model=usable_model(loaded, options.model),
            agent="reviewer",
            mode="plan",
            trusted=options.trust,
            on_event=_show_progress,
        )
    )
    folder = loaded.settings.storage_root / CONVERSATIONS_FOLDER / result["conversation_id"]
    record = read_review(folder)
    if record is None or record.request != wanted:
        what = "reviewed something else" if record else "did not review anything"
        said = one_line(result["assistant_message"]["content"])[:300]
        raise KodeError("ToolFailed", f"The model {what}; try another one. It said: {said}")
    return record


def _wanted(options: argparse.Namespace) -> dict[str, Any]:
    wanted: dict[str, Any] = {"paths": options.path, "focus": options.focus, "nits": options.nits}
    if options.staged:
        return {**wanted, "of": "staged"}
    if options.base is not None:
        return {**wanted, "of": "branch", "range": options.base}
    return {**wanted, "of": "range", "range": options.range} if options.range else wanted


def _show_progress(event: dict[str, Any]) -> None:
    if event["type"] == "tool.progress":
        _say(event["message"])


def _say(text: str) -> None:
    sys.stderr.write(f"kode-sidecar: {one_line(text)}\n")
