"""Edits of a text by code-point offsets: applying, shrinking and joining them, moving spans.

Pure. Offsets count code points of the raw text, whatever its line ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from kode_sidecar.core.text.line_diff import Run, diff_lines, longest, split_lines

LineRange = tuple[int, int]
"""First and last line, from 1."""


class Change(Protocol):
    """`[start, end)` of a text is replaced by `text`: an edit, or what a `didChange` reported."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Edit:
    """A change as a value."""

    start: int
    end: int
    text: str


def to_lf(text: str) -> str:
    """Return `text` with LF line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def with_eol(text: str, eol: str) -> str:
    """Return `text` with every line end turned into `eol`."""
    lf = to_lf(text)
    return lf if eol == "\n" else lf.replace("\n", eol)


def with_one_eol(text: str, like: str) -> str:
    """Return `text` with the one line end, CRLF or LF, that most lines of `like` have."""
    crlf = like.count("\r\n")
    return with_eol(text, "\r\n" if crlf > like.count("\n") - crlf else "\n")


def with_ends_of(text: str, lines: Sequence[str], eol: str) -> str:
    """Return `text` with each line ending as the one of `lines` it replaces; others get `eol`."""
    result: list[str] = []
    for at, line in enumerate(split_lines(to_lf(text))):
        own = _final_eol(lines[at]) if at < len(lines) else ""
        result.append(line.removesuffix("\n") + (own or eol) if line.endswith("\n") else line)
    return "".join(result)


def ending_like(text: str, *others: str) -> str:
    """Return `text` as whole lines, if one of `others` is and there is any text at all."""
    ends = ("\n", "\r")
    whole = not text or text.endswith(ends) or not any(other.endswith(ends) for other in others)
    return text if whole else text + "\n"


def apply_edits(text: str, edits: Iterable[Change]) -> str:
    """Return `text` with ascending, disjoint edits done; all offsets are those of `text`."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += (text[at : edit.start], edit.text)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def refine(text: str, change: Change) -> tuple[Edit, ...]:
    """Return a change of `text` as changes of whole lines, ascending, in offsets of `text`.

    For editors that report the whole text, or all from the first to the last change, as one.
    """
    lines = whole_lines(text, change)
    old, new = split_lines(text[lines.start : lines.end]), split_lines(lines.text)
    offsets = list(accumulate(map(len, old), initial=lines.start))
    return tuple(
        Edit(offsets[a0], offsets[a1], "".join(new[b0:b1]))
        for a0, a1, b0, b1 in diff_lines(old, new)
    )


def whole_lines(text: str, edit: Change) -> Edit:
    """Return the same edit of `text`, extended to whole lines."""
    start = _line_start(text, edit.start)
    begun = text[start : edit.start] + edit.text
    # If the new text is empty or whole lines, the line below stays outside.
    whole = (not begun or begun.endswith(("\n", "\r"))) and between_lines(text, edit.end)
    end = edit.end if whole else _line_end(text, edit.end)
    return Edit(start, end, begun + text[edit.end : end])


def line_runs(text: str, edits: Sequence[Change]) -> list[Run]:
    """Return edits of whole lines of `text`, ascending, as runs of lines."""
    runs: list[Run] = []
    line = new_line = at = 0
    for edit in edits:
        same = _lines_in(text[at : edit.start])
        line, new_line = line + same, new_line + same
        old = _lines_in(text[edit.start : edit.end])
        new = _lines_in(edit.text)
        runs.append((line, line + old, new_line, new_line + new))
        line, new_line, at = line + old, new_line + new, edit.end
    return runs


def _lines_in(text: str) -> int:
    """Return how many lines a text of whole lines has; the last may lack its end."""
    lf = to_lf(text)
    return lf.count("\n") + (not lf.endswith("\n") and bool(lf))


def between_lines(text: str, at: int) -> bool:
    """Return whether `at` is the start of a line, or the end of the text."""
    if at in (0, len(text)):
        return True
    return text[at - 1] == "\n" or (text[at - 1] == "\r" and text[at] != "\n")


def repeats_beside(text: str, start: int, end: int, lines: str) -> int:
    """Return how often `lines` stand right above `start` and right below `end`, one by one.

    Line ends do not count; what follows in the last line of them does not, either.
    """
    part = to_lf(lines).removesuffix("\n")
    if not part.strip():
        return 0
    size, count = len(lines), 0
    while to_lf(text[end : end + size]).startswith(part):
        end += size
        count += 1
    while start and to_lf(text[max(start - size, 0) : start]).removesuffix("\n") == part:
        start = max(start - size, 0)
        count += 1
    return count


def common_prefix(one: str, other: str) -> int:
    """Return how many characters at the beginning are equal."""
    room = min(len(one), len(other))
    return longest(lambda low, high: one[low:high] == other[low:high], room)


def common_suffix(one: str, other: str, head: int = 0) -> int:
    """Return how many characters at the end are equal, without the first `head` of either."""
    room = min(len(one), len(other)) - head
    return common_prefix(one[len(one) - room :][::-1], other[len(other) - room :][::-1])


def minimal_edits(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Return the same edits, as small as every editor understands them: ascending, none touching.

    Common lines and characters at both ends are left out. No edit starts or ends between
    `\\r` and `\\n`, and none lies past the last line as Neovim counts lines (it knows no empty
    line after a final line end), except where a text cannot be reached without.
    """
    small = [_off_the_end(text, _trim(text, edit)) for edit in joined_edits(edits)]
    return joined_edits(edit for edit in small if edit.start < edit.end or edit.text)


def joined_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Return `edits` with touching ones joined."""
    result: list[Edit] = []
    for edit in edits:
        if result and result[-1].end == edit.start:
            last = result.pop()
            result.append(Edit(last.start, edit.end, last.text + edit.text))
        else:
            result.append(edit)
    return result


def replace_lines(text: str, lines: LineRange, new: str | None) -> str:
    """Return `text` with lines replaced by those of `new`, whose final line end is optional.

    None deletes the lines, "" leaves one empty line. The text keeps its final line end, or its
    lack of one. Raises ValueError for lines that the text does not have.
    """
    old = split_lines(text)
    first, last = lines
    if not 1 <= first <= last <= len(old):
        raise ValueError(f"there are no lines {first}-{last} in a text of {len(old)} lines")
    put = "" if new is None else new.removesuffix("\n") + "\n"
    result = "".join((*old[: first - 1], put, *old[last:]))
    ended = text.endswith("\n")
    return result if ended or last < len(old) else result.removesuffix("\n")


def follow_lines(before: str, after: str, lines: LineRange) -> LineRange | None:
    """Return where these lines of `before` are in `after`; None if they, or a border, were touched.

    A change that could as well have happened elsewhere, as in a run of equal lines, counts as
    done at each of those places.
    """
    old, new = split_lines(before), split_lines(after)
    first, last = lines[0] - 1, lines[1]
    moved = 0
    for run in diff_lines(old, new):
        start, end = _reach(old, new, run)
        if run[1] <= first and (end < first or (end == first and run[0] < run[1])):
            moved = run[3] - run[1]
        elif not (start > last or (start == last and run[0] < run[1])):
            return None
    return lines[0] + moved, lines[1] + moved


def _trim(text: str, edit: Edit) -> Edit:
    """Return `edit` without the common text at both ends."""
    old, new = text[edit.start : edit.end], edit.text
    head = common_prefix(old, new)
    while head and (splits_crlf(text, edit.start + head) or splits_crlf(new, head)):
        head -= 1
    tail = common_suffix(old, new, head)
    while tail and (splits_crlf(text, edit.end - tail) or splits_crlf(new, len(new) - tail)):
        tail -= 1
    return Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail])


def _off_the_end(text: str, edit: Edit) -> Edit:
    """Move an edit after the final line end to before it: `b⏎` after `a⏎` is `⏎b` after `a`."""
    final = _final_eol(text)
    if not final or edit.end < len(text):
        return edit
    gone = text[edit.start : edit.end]
    before = edit.start - len(final)
    if not gone and _final_eol(edit.text) == final:
        return Edit(before, before, final + edit.text.removesuffix(final))
    rotates = before >= 0 and text.startswith(final, before) and not splits_crlf(text, before)
    if gone and not edit.text and rotates:
        return Edit(before, edit.end - len(final), "")
    return edit


def _final_eol(text: str) -> str:
    return next((eol for eol in ("\r\n", "\n", "\r") if text.endswith(eol)), "")


def splits_crlf(text: str, at: int) -> bool:
    """Return whether an offset lies in the middle of a line end."""
    return 0 < at < len(text) and text[at - 1] == "\r" and text[at] == "\n"


def _line_start(text: str, at: int) -> int:
    if between_lines(text, at):
        return at
    feed = text.rfind("\n", 0, at)
    return max(feed, text.rfind("\r", feed + 1, at - 1)) + 1


def _line_end(text: str, at: int) -> int:
    """Return the start of the line after the one that holds `at`."""
    feed = text.find("\n", at)
    last = len(text) if feed < 0 else feed
    carriage = text.find("\r", at, last)
    end = min((carriage if carriage >= 0 else last) + 1, len(text))
    return end + 1 if splits_crlf(text, end) else end


def _reach(old: Sequence[str], new: Sequence[str], run: Run) -> tuple[int, int]:
    """Return the lines of `old` that an insertion or a deletion may slide over, `[start, end)`."""
    a0, a1, b0, b1 = run
    if a0 < a1 and b0 < b1:
        return a0, a1
    lines, first, last = (old, a0, a1) if a0 < a1 else (new, b0, b1)
    up = down = 0
    while first - up > 0 and lines[first - up - 1] == lines[last - up - 1]:
        up += 1
    while last + down < len(lines) and lines[last + down] == lines[first + down]:
        down += 1
    return a0 - up, a1 + down
