"""What belongs to a query, and the bounds of what is remembered (B10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.memory import (
    MAX_CONTENT_CHARS,
    MemoryItem,
    best_matches,
    check_memory,
)
from kode_sidecar.errors import KodeError


def item(number: int, content: str, *tags: str) -> MemoryItem:
    time = f"2026-01-02T03:04:{number:02}.000Z"
    return MemoryItem(id=f"m{number}", content=content, scope="user", tags=tags, created_at=time)


ITEMS = (
    item(1, "Tests run with pytest -n 2"),
    item(2, "提交信息用英文写"),
    item(3, "The user likes short answers", "style"),
    item(4, "发布之前先运行完整的测试"),
)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", "4 3 2 1"),
        ("how do I run the TESTS?", "1 3 4 2"),
        ("请帮我写提交信息", "2 4 3 1"),
        ("发布测试", "4 3 2 1"),
        ("answer style", "3 4 2 1"),
    ],
)
def test_what_shares_words_comes_first_then_the_newest(query: str, ids: str) -> None:
    assert " ".join(found.id[1:] for found in best_matches(ITEMS, query, 9)) == ids


@given(st.permutations(ITEMS), st.text(max_size=30), st.integers(0, 5))
def test_order_and_limit_do_not_depend_on_the_order_of_items(
    items: list[MemoryItem], query: str, limit: int
) -> None:
    found = best_matches(items, query, limit)
    assert found == best_matches(ITEMS, query, limit)
    assert len(found) == min(limit, len(ITEMS))


@pytest.mark.parametrize(
    ("content", "scope", "tags"),
    [
        (" \n", "user", ()),
        ("x" * (MAX_CONTENT_CHARS + 1), "user", ()),
        ("x", "", ()),
        ("x", "s" * 201, ()),
        ("x", "user", ("",)),
        ("x", "user", ("t" * 51,)),
        ("x", "user", ("t",) * 21),
    ],
)
def test_what_is_out_of_bounds_is_refused(content: str, scope: str, tags: tuple[str, ...]) -> None:
    with pytest.raises(KodeError) as caught:
        check_memory(content, scope, tags)
    assert caught.value.code == "InvalidArguments"
