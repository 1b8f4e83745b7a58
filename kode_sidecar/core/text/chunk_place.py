"""Finds where a chunk of a patch belongs in a text. Pure; LF text."""

from collections.abc import Sequence
from dataclasses import replace

from kode_sidecar.core.text.edit_match import EditMatch, MatchError, locate
from kode_sidecar.core.text.file_patch import PatchChunk
from kode_sidecar.core.text.text_edit import Edit


def locate_chunk(text: str, chunk: PatchChunk) -> EditMatch | MatchError:
    """Return what the chunk does to `text`.

    Its old lines must occur once; if they occur more often, once below the lines of its context,
    each of which must occur once below the one before. Lines that are only added go below the
    context, or to the end of the file where the chunk says so.
    """
    if not chunk.old:
        return _addition(text, chunk)
    old, new = _joined(chunk.old), _joined(chunk.new)
    ended = text if text.endswith("\n") else text + "\n"
    if chunk.at_end and f"\n{ended}".endswith(f"\n{old}"):
        return EditMatch((Edit(len(ended) - len(old), len(text), new),))
    found = locate(text, old, new, whole_lines=True)
    spare = len(chunk.old) > 1 and not chunk.old[-1] and bool(chunk.new) and not chunk.new[-1]
    if isinstance(found, MatchError) and found.code == "not_found" and spare:
        # The last blank line may only separate chunks.
        bare = locate_chunk(text, replace(chunk, old=chunk.old[:-1], new=chunk.new[:-1]))
        return bare if isinstance(bare, EditMatch) else found
    narrowed = isinstance(found, MatchError) and found.code == "ambiguous"
    if narrowed and chunk.line is not None:
        near = locate(text, old, new, near_line=chunk.line, whole_lines=True)
        return found if isinstance(near, MatchError) else near
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


def _addition(text: str, chunk: PatchChunk) -> EditMatch | MatchError:
    new = _joined(chunk.new)
    if chunk.context:
        start = _below(text, chunk.context)
        if isinstance(start, MatchError):
            return start
        gap = "" if text[:start].endswith("\n") else "\n"
        return EditMatch((Edit(start, start, gap + new),))
    if chunk.at_end or not text:
        gap = "\n" if text and not text.endswith("\n") else ""
        return EditMatch((Edit(len(text), len(text), gap + new),))
    return MatchError(
        "empty_old",
        "A chunk only adds lines and does not say where. Quote the lines around the place in it.",
    )


def _below(text: str, context: tuple[str, ...]) -> int | MatchError:
    """Return where the line below the last context line begins."""
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


def with_final_end_of(text: str, result: str, chunks: Sequence[PatchChunk]) -> str:
    """Return the result of `chunks` with a final line end only where `text` has one.

    The lines of a patch always end; only a chunk with `ends_file` speaks of the end of the file.
    """
    if not text or text.endswith("\n") or any(chunk.ends_file for chunk in chunks):
        return result
    return result.removesuffix("\n")


def _joined(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)
