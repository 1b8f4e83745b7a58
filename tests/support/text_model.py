"""The slow, obvious meaning of LSP positions, to compare the fast code with."""

from hypothesis import strategies as st

from kode_sidecar.core.domain.change_set import Position

ENCODINGS = ["utf-8", "utf-16", "utf-32"]
PIECES = ["a", "b ", "é", "中", "😀", "𝒳", "\u2028", "\x0c", "\x85", "\x0b", "\x1e", "\t"]
ENDS = ["\n", "\r\n", "\r"]

tangled_text = st.lists(st.sampled_from(PIECES + ENDS), max_size=24).map("".join)
wild_position = st.builds(Position, st.integers(0, 9), st.integers(0, 14))


def lines_of(text: str) -> list[str]:
    """Lines with ends, the empty last one included, cut character by character."""
    lines, line, index = [], "", 0
    while index < len(text):
        end = next((end for end in ("\r\n", "\n", "\r") if text.startswith(end, index)), "")
        line += end or text[index]
        index += len(end) or 1
        if end:
            lines.append(line)
            line = ""
    return [*lines, line]


def units(character: str, encoding: str) -> int:
    """How many units a character takes."""
    if encoding == "utf-32":
        return 1
    if encoding == "utf-16":
        return 2 if ord(character) > 0xFFFF else 1
    return len(character.encode())


def offset_of(text: str, position: Position, encoding: str) -> int:
    """The code-point offset of a position, clamped, inside a character at its start."""
    lines = lines_of(text)
    if position.line >= len(lines):
        return len(text)
    before = sum(map(len, lines[: position.line]))
    left = position.character
    for index, character in enumerate(lines[position.line]):
        left -= units(character, encoding)
        if character in "\r\n" or left < 0:
            return before + index
    return before + len(lines[position.line])


def position_of(text: str, offset: int, encoding: str) -> Position:
    """The position of a code-point offset; between `\\r` and `\\n` it is before both."""
    if text[max(offset - 1, 0) : offset + 1] == "\r\n":
        offset -= 1
    lines = lines_of(text[:offset])
    return Position(len(lines) - 1, sum(units(char, encoding) for char in lines[-1]))
