"""Every notice of the program is in the table, in one style, and the table holds no other."""

import ast
import re
from collections.abc import Iterator
from typing import get_args

from kode_sidecar.agent.event_log.history import LOSS
from kode_sidecar.core.domain.notice_codes import NOTICES, NoticeCode
from kode_sidecar.errors import ERRORS
from tests.support.program import ROOT

MAKERS = {"Notice": 0, "ModelNotice": 0, "_notify_user": 1, "notify_user": 0}
"""What makes a notice, and where among its arguments the code stands."""


def reported() -> Iterator[str]:
    """The literal codes of all notices that the program makes."""
    for file in (ROOT / "kode_sidecar").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
                place = MAKERS.get(name)
                given = [one.value for one in node.keywords if one.arg == "code"]
                given += [] if place is None else node.args[place : place + 1]
                if place is not None:
                    yield from (str(one.value) for one in given if isinstance(one, ast.Constant))


def test_the_table_is_what_the_program_says() -> None:
    assert {*reported(), LOSS} == set(NOTICES)
    assert set(get_args(NoticeCode)) == set(NOTICES)


def test_names_of_notices_and_errors_have_one_style() -> None:
    assert [code for code in (*NOTICES, *ERRORS) if not re.fullmatch(r"([A-Z][a-z]+)+", code)] == []
