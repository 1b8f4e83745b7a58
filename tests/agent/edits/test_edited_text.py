"""Many edits of one text: the same text as when it is written anew for each of them."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.edit_match import EditMatch, locate
from kode_sidecar.core.text.edited_text import EditedText
from kode_sidecar.core.text.text_edit import Edit, apply_edits

words = st.text("ab\n", max_size=4)


@given(st.text("abc\n", max_size=40), st.lists(st.tuples(words, words), max_size=8))
def test_the_same_as_one_after_the_other(text: str, pairs: list[tuple[str, str]]) -> None:
    now, edited = text, EditedText(text, large_chars=0)
    for old, new in pairs:
        at = now.find(old) if old else -1
        alone = at >= 0 and now.find(old, at + 1) < 0
        done = edited.replace_only(old, new)
        assert alone or not done
        if done:
            now = apply_edits(now, [Edit(at, at + len(old), new)])
        elif alone:
            edit = Edit(at, at + len(old), new)
            edited.do([edit])
            now = apply_edits(now, [edit])
    assert edited.text == now


def test_most_edits_of_a_large_text_need_no_closer_look(rng: random.Random) -> None:
    lines = [f"line {at} of a text in lines\n" for at in range(9_000)]
    text = "".join(lines)
    edited, plain = EditedText(text), text
    for at in rng.sample(range(9_000), 60):
        old, new = f"line {at} of", f"row {at} of"
        assert edited.replace_only(old, new)
        found = locate(plain, old, new)
        assert isinstance(found, EditMatch)
        plain = apply_edits(plain, found.edits)
    assert not edited.replace_only("line 9999 of", "x")
    assert not edited.replace_only("of a text", "x")
    assert edited.text == plain
