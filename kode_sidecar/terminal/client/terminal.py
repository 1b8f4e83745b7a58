"""Writes the conversation to a terminal as it streams."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from kode_sidecar.core.text.shown_text import clipped, one_line, visible, without_controls
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.diff_view import ShownGroup, ShownLine, hunk_diff, line_diff
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.labels import Labels
from kode_sidecar.terminal.client.windows_console import understands_escapes

_CODES: Mapping[str, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
_NOTICE_STYLES: Mapping[str, str] = {"info": "cyan", "warning": "yellow", "error": "red"}
_ARGUMENT_COLUMNS = 48
OUTPUT_LINES = 10
"""How many lines of a command's output are shown."""
_SUMMARY_COLUMNS = 72


def allows_color(out: TextIO, environ: Mapping[str, str]) -> bool:
    """True for a real terminal without NO_COLOR (no-color.org)."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb" and out.isatty()


def wants_color(out: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether to write colours as escape sequences."""
    return allows_color(out, environ) and understands_escapes(out)


def prepare(out: TextIO) -> None:
    """Make `out` accept any text, replacing what its encoding lacks."""
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


class Terminal:
    """Writes the stream of a `watch.Watch`, without control characters (W13).

    `echo=False` leaves out prompts, which the user has typed on this terminal.
    """

    def __init__(
        self, out: TextIO, labels: Labels, *, color: bool | None = None, echo: bool = True
    ) -> None:
        self._out = out
        self._labels = labels
        self._echo = echo
        self._color = wants_color(out, os.environ) if color is None else color
        self._streaming = ""
        self._at_line_start = True
        self._shown: dict[str, int] = {}

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line of the program itself, below streamed text."""
        self._end_stream()
        self._write(f"{visible(text)}\n", style)

    def markdown(self, text: str) -> None:
        """Write a whole answer as it is."""
        for line in text.splitlines():
            self.line(line)

    def prompt(self, text: str) -> None:
        """Write the start of a line that the user will complete and end."""
        self._end_stream()
        self._write(visible(text), "bold")
        self._at_line_start = True

    def growth(self, session: ClientSession, block_id: str, added: str) -> None:
        """Write a delta."""
        block = session.blocks[block_id]
        if block["type"] in ("text", "thinking"):
            self._stream(block, added)

    def event(self, session: ClientSession, event: Json) -> None:
        """Write an event that is already folded."""
        match event["type"]:
            case "message.added":
                if event["role"] == "assistant":
                    self.line()
            case "block.completed":
                self._block_completed(session, event)
            case "block.dropped":
                self._dropped(event["blockId"])
            case "changeSet.updated":
                self._change_set_updated(session, event)
            case "scout.updated":
                self._scout_updated(event)
            case "plan.updated":
                self._plan(event["items"])
            case "notice":
                level = event.get("level", "info")
                mark = "ℹ" if level == "info" else "⚠"
                self.line(f"{mark} {event['message']}", _NOTICE_STYLES.get(level, ""))
            case "permission.requested":
                self.line(f"? {self._labels.question}: {event['title']}", "yellow")
            case "turn.completed":
                self._turn_completed(session, event)
            case _:
                pass

    def change_set(
        self,
        hunks: Sequence[Json],
        texts: Mapping[str, str],
        encoding: PositionEncoding = "utf-16",
    ) -> None:
        """Write every hunk of a change set as a diff; `texts` are buffers' texts by URI."""
        for number, hunk in enumerate(hunks, 1):
            title = self._labels.hunk.format(number=number, count=len(hunks), path=hunk["path"])
            state = self._labels.hunk_states.get(hunk["state"], hunk["state"])
            self.hunk(f"{title} · {state}", hunk, texts.get(hunk["uri"]), encoding)

    def hunk(
        self, title: str, hunk: Json, text: str | None, encoding: PositionEncoding = "utf-16"
    ) -> None:
        """Write one hunk as a diff; `text` is the buffer's text that its range refers to."""
        self.line()
        self.line(title, "bold")
        if whole := self._labels.whole_files.get(hunk.get("kind", "")):
            self.line(whole.format(target=one_line(hunk.get("newPath", ""))), "yellow")
        flags: list[str] = hunk.get("flags", [])
        if flags:
            self.line(self._labels.flags.format(flags=", ".join(flags)), "yellow")
        groups = hunk_diff(hunk, text, encoding)
        self._diff(groups, code_points="invisibleCharacters" in flags)

    def patch(self, reason: str, diff: str) -> None:
        """Write why the user is asked, and the unified diff to be permitted."""
        if reason:
            self.line(one_line(reason), "yellow")
        for line in diff.splitlines():
            self.line(line, {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], ""))

    def difference(self, before: str, after: str) -> None:
        """Write the difference of two texts as a diff."""
        self._diff(line_diff(before, after))

    def _diff(self, groups: list[ShownGroup], *, code_points: bool = False) -> None:
        styles = {"-": "red", "+": "green", " ": ""}
        for group in groups:
            self.line(group.header, "cyan")
            for line in group.lines:
                text = self._marked(line)
                if code_points:
                    text = visible(line.text)
                numbers = f"{line.old_number or '':>4} {line.new_number or '':>4}"
                self._end_stream()
                self._write(f"{numbers} {line.kind} {text}\n", styles[line.kind])

    def _marked(self, line: ShownLine) -> str:
        """Return a line without control characters, its changed parts in reverse video."""
        parts: list[str] = []
        at = 0
        for start, end in line.changed if self._color else ():
            parts += [without_controls(line.text[at:start]), "\x1b[7m"]
            parts += [without_controls(line.text[start:end]), "\x1b[27m"]
            at = end
        return "".join([*parts, without_controls(line.text[at:])])

    def _block_completed(self, session: ClientSession, event: Json) -> None:
        block = session.blocks[event["blockId"]]
        message = session.messages[event["messageId"]]
        if block["type"] == "tool_result":
            self._card(session, block)
        elif block["type"] in ("text", "thinking"):
            role = message.get("role")
            if role in ("user", "system"):
                if block["id"] == message["blocks"][0]:  # attachments follow
                    self._user_text(block, message.get("meta") or {})
            elif role == "assistant":
                self._rest(block)

    def _dropped(self, block_id: str) -> None:
        if self._shown.pop(block_id, 0):
            self.line(f"↺ {self._labels.dropped}", "yellow")

    def _user_text(self, block: Json, meta: Json) -> None:
        if meta.get("origin") not in (None, "steer"):
            self.line(f"↳ {self._labels.reminder}: {one_line(block['text'])}", "dim")
        elif self._echo:
            self.line()
            self.line(f"{self._labels.you} › {self._as_typed(block['text'])}", "bold")

    def _as_typed(self, text: str) -> str:
        """Return a prompt as the user saw it while typing."""
        return text

    def _rest(self, block: Json) -> None:
        """Write the part of a completed block not streamed yet; all of it if some was lost."""
        shown = self._shown.pop(block["id"], 0)
        if shown > len(block["text"]):
            self.line(self._labels.whole_again, "yellow")
            shown = 0
        if shown < len(block["text"]):
            self._stream(block, block["text"][shown:])
            del self._shown[block["id"]]
        self._end_stream()

    def _stream(self, block: Json, added: str) -> None:
        block_id, is_thought = block["id"], block["type"] == "thinking"
        if self._streaming != block_id:
            self._end_stream()
            self._streaming = block_id
            if is_thought:
                self._write(f"{self._labels.thinking} · ", "dim")
        self._shown[block_id] = self._shown.get(block_id, 0) + len(added)
        self._write(visible(added, part=True), "dim" if is_thought else "")

    def _end_stream(self) -> None:
        self._streaming = ""
        if not self._at_line_start:
            self._write("\n")

    def _card(self, session: ClientSession, result: Json) -> None:
        use = session.tool_use(result["toolUseId"])
        status = result.get("status", "error" if result.get("isError") else "ok")
        words = {
            "error": self._labels.failed,
            "cancelled": self._labels.cancelled,
            "denied": self._labels.denied,
        }
        mark = "✓ ok" if status == "ok" else f"✗ {words.get(status, status)}"
        summary = clipped(one_line(result.get("summary", "")), _SUMMARY_COLUMNS)
        name = use.get("name", "?")
        arguments = clipped(short_arguments(use.get("input") or {}), _ARGUMENT_COLUMNS)
        parts = [f"⚙ {name}", arguments, summary, mark]
        if use.get("kind") == "run":
            parts = [f"⚙ {one_line(use.get('title', name))}", summary, mark]
        self.line(" · ".join(part for part in parts if part), "green" if status == "ok" else "red")
        if use.get("kind") == "run" and status in ("ok", "error"):
            self._output(result)

    def _output(self, result: Json) -> None:
        """Write the last lines of what a command wrote; the first line of its result is a head."""
        texts = (part.get("text", "") for part in result.get("content", ()))
        lines = "".join(texts).rstrip("\n").split("\n")[1:]
        left_out = len(lines) - OUTPUT_LINES
        if left_out > 1:
            lines = [self._labels.earlier_lines.format(count=left_out), *lines[left_out:]]
        for line in lines:
            self.line(f"  {line}", "dim")

    def _change_set_updated(self, session: ClientSession, event: Json) -> None:
        known = session.hunks_of(event["changeSetId"])
        numbers = {hunk["hunkId"]: number for number, hunk in enumerate(known, 1)}
        for file in event.get("files", ()):
            new = [hunk for hunk in file["hunks"] if "kind" in hunk]
            if new:
                text = self._labels.proposed.format(count=len(new), path=file["path"])
                self.line(f"✎ {text}", "cyan")
            for hunk in file["hunks"]:
                if "kind" not in hunk:
                    state = self._labels.hunk_states.get(hunk["state"], hunk["state"])
                    if reason := hunk.get("reason"):
                        state = self._labels.not_applied.format(reason=one_line(reason))
                    self.line(f"✎ {file['path']} · #{numbers[hunk['hunkId']]} · {state}", "cyan")

    def _plan(self, items: Sequence[Json]) -> None:
        """Write the model's steps with what is done of them."""
        for step in plan_lines(items):
            self.line(step)

    def _scout_updated(self, event: Json) -> None:
        """Write a scout's end, and before it only that it must report."""
        labels, state = self._labels, event["state"]
        if state == "running":
            return
        text = labels.scout.format(
            title=one_line(without_controls(event["title"])),
            state=labels.scout_states.get(state, state),
            calls=event.get("toolCalls", 0),
            seconds=f"{event.get('elapsedMs', 0) / 1000:.1f}",
        )
        style = {"done": "green", "reporting": "dim"}.get(state, "red")
        self.line(f"⌕ {text}", style)

    def _turn_completed(self, session: ClientSession, event: Json) -> None:
        labels = self._labels
        reason = labels.stop_reasons.get(event["stopReason"], event["stopReason"])
        parts = [labels.turn.format(reason=reason), _usage(event.get("usage") or {}, labels)]
        cost = event.get("cost")
        if cost:
            parts.append(f"{cost['amount']:.4f} {cost['currency']}")
        if event.get("durationMs"):
            parts.append(f"{event['durationMs'] / 1000:.1f} s")
        self.line()
        self.line(f"■ {' · '.join(parts)}", "dim")
        error = event.get("error")
        if error:
            newest = next(reversed(session.messages), None)
            said = [b.get("text") for b in session.blocks.values() if b["messageId"] == newest]
            is_said = error["message"] in said
            text = error["code"] if is_said else f"{error['message']} ({error['code']})"
            self.line(f"⚠ {text}", "red")

    def _write(self, text: str, style: str = "") -> None:
        if not text:
            return
        self._at_line_start = text.endswith("\n")
        if style and self._color and text.strip():
            body = text.rstrip("\n")
            text = f"\x1b[{_CODES[style]}m{body}\x1b[0m{text[len(body) :]}"
        self._out.write(text)
        with suppress(OSError):
            self._out.flush()


def plan_lines(items: Sequence[Json]) -> list[str]:
    """Return a line for each step of a plan: done, at work, or still to do."""
    marks = {"done": "☑", "in_progress": "▸"}
    return [f"{marks.get(one['state'], '☐')} {one_line(one['text'])}" for one in items]


def short_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the plain values of a tool call's arguments on one line, without their names."""
    plain = [value for value in arguments.values() if isinstance(value, str | int | float)]
    return one_line(" ".join(str(value) for value in plain))


def _usage(usage: Json, labels: Labels) -> str:
    if not usage:
        return labels.usage_unknown
    return labels.usage.format(
        input=usage.get("inputTokens", 0),
        output=usage.get("outputTokens", 0),
        cached=usage.get("cachedTokens", 0),
    )
