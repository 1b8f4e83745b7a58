"""Texts and edits for property tests: every line end, wide characters, no final line end."""

from hypothesis import strategies as st

from kode_sidecar.core.text.text_edit import Edit

WORDS = ["", "a", "b", "return x", "  }", "中文", "é", "😀", "a😀b", "𝒳\u2028", "\u200b", "x\x0c"]
EOLS = {"lf": ["\n"], "crlf": ["\r\n"], "mixed": ["\n", "\r\n"]}


@st.composite
def texts(draw: st.DrawFn, max_lines: int = 10) -> str:
    """A document without lone `\\r`, of one style of line ends or a mixture."""
    ends = EOLS[draw(st.sampled_from(["lf", "crlf", "mixed"]))]
    words = draw(st.lists(st.sampled_from(WORDS), max_size=max_lines))
    text = "".join(word + draw(st.sampled_from(ends)) for word in words)
    return text + draw(st.sampled_from(["", "", "last", "末"]))


@st.composite
def lf_edit(draw: st.DrawFn, text: str) -> str:
    """`text` (LF) with some lines replaced, inserted or deleted."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(lines)))
        end = draw(st.integers(start, min(len(lines), start + 3)))
        lines[start:end] = draw(st.lists(st.sampled_from([*WORDS, "new"]), max_size=3))
    return "\n".join(lines)


@st.composite
def typing(draw: st.DrawFn, text: str) -> Edit:
    """A change a user could make: never between `\\r` and `\\n`, never leaving a lone `\\r`."""
    places = [
        at
        for at in range(len(text) + 1)
        if not (0 < at < len(text) and text[at - 1] == "\r" and text[at] == "\n")
    ]
    start = draw(st.integers(0, len(places) - 1))
    end = draw(st.integers(start, min(len(places) - 1, start + 6)))
    eol = "\r\n" if "\r\n" in text else "\n"
    typed = draw(
        st.sampled_from(["", "", "z", "中", "😀", eol, f"q{eol}", f"{eol}w", f"k{eol}l{eol}"])
    )
    return Edit(places[start], places[end], typed)
