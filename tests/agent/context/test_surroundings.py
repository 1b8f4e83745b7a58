"""What an agent is told when its surroundings change."""

from dataclasses import replace

import pytest

from kode_sidecar.agent.context.agents import agent_profile
from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.context.surroundings import (
    SURROUNDINGS,
    changes,
    known_states,
    prompt_parts,
    states_of,
)
from kode_sidecar.agent.context.system_prompt import ProjectNote, Surroundings, system_prompt
from kode_sidecar.core.domain.message import Message

CODER = agent_profile("coder")
HERE = Surroundings(["/p"], "linux", "Neovim", "2026-01-02", notes=[ProjectNote("/p", "Tabs.")])
PROMPTS = PromptFiles(find_prompts(), "en")


def reported(*changed: Surroundings, mode: str = "review") -> list[str]:
    """The texts of the last change, after all of the others were told."""
    first = states_of(prompt_parts(PROMPTS, CODER, "review", HERE))
    messages: list[Message] = []
    texts: list[str] = []
    for one in changed:
        news = changes(known_states(first, messages), prompt_parts(PROMPTS, CODER, mode, one))
        texts = [change.text for change in news]
        for change in news:
            meta = {"origin": "reminder", SURROUNDINGS: change.states}
            messages.append(Message(id="", session_id="", role="user", meta=meta))
    return texts


def test_nothing_is_told_while_nothing_changes() -> None:
    assert reported(HERE) == []
    later = replace(HERE, date="2026-01-03")
    assert reported(later, later) == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (replace(HERE, date="2026-01-03"), "Today: 2026-01-03"),
        (replace(HERE, roots=["/p", "/q"]), "Project folders:\n- /p\n- /q"),
        (replace(HERE, roots=[]), "(no folder is open)"),
        (replace(HERE, editor="VS Code"), "Editor: VS Code"),
        (replace(HERE, platform="win32"), "Platform: win32"),
        (replace(HERE, notes=[ProjectNote("/p", "Tab")]), "\n\nTab"),
        (replace(HERE, notes=[]), "No longer there: the notes of /p."),
        (replace(HERE, commands=True), "# Commands"),
        (replace(HERE, language_servers=True), "# What the editor's language servers know"),
    ],
)
def test_each_change_is_told_once_and_so_is_the_way_back(after: Surroundings, said: str) -> None:
    (text,) = reported(after)
    assert said in text
    assert reported(after, after) == []
    assert len(reported(after, HERE)) == 1
    assert reported(after, HERE, HERE) == []


def test_a_mode_is_told_in_our_words_and_notes_are_not() -> None:
    after = replace(HERE, notes=[ProjectNote("/p", "Obey.")])
    first = states_of(prompt_parts(PROMPTS, CODER, "review", HERE))
    news = changes(first, prompt_parts(PROMPTS, CODER, "plan", after))
    assert [change.ours for change in news] == [True, False]
    assert "planning only" in news[0].text
    assert "Obey." not in news[0].text
    assert "Obey." in news[1].text


def test_another_language_is_no_change() -> None:
    chinese = PromptFiles(find_prompts(), "zh")
    there = replace(HERE, commands=True, language_servers=True)
    first = states_of(prompt_parts(chinese, CODER, "auto", there))
    assert changes(first, prompt_parts(PROMPTS, CODER, "auto", there)) == []


def test_a_client_cannot_pretend_that_something_was_told() -> None:
    meta = {SURROUNDINGS: {"mode": "plan"}}
    forged = Message(id="", session_id="", role="user", meta=meta)
    first = states_of(prompt_parts(PROMPTS, CODER, "review", HERE))
    assert known_states(first, [forged]) == first


def test_all_that_may_change_stands_in_the_system_prompt() -> None:
    there = replace(HERE, commands=True, language_servers=True)
    text = system_prompt(PROMPTS, CODER, "auto", there)
    for part in prompt_parts(PROMPTS, CODER, "auto", there).values():
        assert part.text in text or f"- {part.text}" in text
