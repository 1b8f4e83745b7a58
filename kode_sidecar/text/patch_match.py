"""Where the chunks of a patch belong. Pure; LF text. The ladder is that of `edit_match`."""

from dataclasses import replace

from kode_sidecar.text.apply_patch import Chunk
from kode_sidecar.text.edit_match import Match, MatchError, locate
from kode_sidecar.text.text_edit import Edit


def locate_chunk(text: str, chunk: Chunk) -> Match | MatchError:
    """What the chunk does to `text`.

    Its old lines must occur once; if they occur more often, once below the lines of its context,
    each of which must occur once below the one before. Lines that are only added go below the
    context, or to the end of the file where the chunk says so.
    """
    if not chunk.old:
        return _addition(text, chunk)
    old, new = _joined(chunk.old), _joined(chunk.new)
    found = locate(text, old, new, whole_lines=True)
    narrowed = isinstance(found, MatchError) and found.code == "ambiguous"
    if narrowed and chunk.at_end and text.endswith(old):
        return Match((Edit(len(text) - len(old), len(text), new),))
    if not narrowed or not chunk.context:
        return found
    start = _below(text, chunk.context)
    if isinstance(start, MatchError):
        return start
    below = locate(text[start:], old, new, whole_lines=True)
    if isinstance(below, MatchError):
        return found
    moved = (Edit(one.start + start, one.end + start, one.text) for one in below.edits)
    return replace(below, edits=tuple(moved))


def _addition(text: str, chunk: Chunk) -> Match | MatchError:
    new = _joined(chunk.new)
    if chunk.context:
        start = _below(text, chunk.context)
        if isinstance(start, MatchError):
            return start
        gap = "" if text[:start].endswith("\n") else "\n"
        return Match((Edit(start, start, gap + new),))
    if chunk.at_end or not text:
        gap = "\n" if text and not text.endswith("\n") else ""
        return Match((Edit(len(text), len(text), gap + new),))
    return MatchError(
        "empty_old",
        "A chunk only adds lines and does not say where. Quote the lines around the place in it.",
    )


def _below(text: str, context: tuple[str, ...]) -> int | MatchError:
    """Where the line below the last context line begins."""
    at = 0
    for wanted in context:
        starts: list[int] = []
        offset = at
        for line in text[at:].split("\n"):
            offset += len(line) + 1
            if line.strip() == wanted:
                starts.append(offset)
        if len(starts) != 1:
            times = f"{len(starts)} times" if starts else "nowhere"
            code = "ambiguous" if starts else "not_found"
            return MatchError(
                code, f"The line `@@ {wanted}` is to be found {times} in the file, not once."
            )
        at = min(starts[0], len(text))
    return at


def _joined(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)
