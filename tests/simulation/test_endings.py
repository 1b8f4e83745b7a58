"""Stories that break no promise, and whose ending is told all the same: the text, and each hunk."""

from typing import NamedTuple

import pytest

from simulation import edit_stories, playing
from simulation.edit_world import EditWorld
from simulation.playing import Stage
from simulation.story import parse_story


class Ending(NamedTuple):
    """`lines` and `steps` have `;` for a new line. `long` is five hours, timer by timer."""

    editor: str
    lines: str
    steps: str
    text: str
    states: str


ENDINGS = {
    "an undo in vain, and another that the user's key hides": Ending(
        "plain",
        "А one;Б two",
        "propose 0 1 1 new;decide accept 0;take;report;answer;undo 0;long;"
        "undo 0;type 2 char;report;take;answer;take;answer;wait 30;listen",
        "가 一new;Б two",
        "diverged",
    ),
    "an undo in vain, and a key that is taken back": Ending(
        "plain",
        "А one;Б two",
        "propose 0 1 1 new;decide accept 0;take;report;answer;undo 0;long;type 2 char;report;"
        "undo_key;report;wait 30;look;listen;undo 0;take;report;answer",
        "А one;Б two",
        "undone",
    ),
    "a redo that comes with a key": Ending(
        "plain",
        "А one;Б two",
        "propose 0 1 1 new;decide accept 0;take;report;answer;undo 0;take;report;answer;listen;"
        "undo 0;long;take;type 2 char;report;answer;wait 10;listen",
        "가 一new;Б two",
        "diverged",
    ),
    "the own text lands over the first edit, which was late": Ending(
        "neovim",
        "А one;Б two",
        "propose 1 1 1 new;decide accept 0;long;decide replace 0;"
        "take;report;take;report;answer;answer;wait 30;listen",
        "А one;ぁ own",
        "replaced",
    ),
    "the own text lands over the first edit, both late": Ending(
        "neovim",
        "А one;Б two",
        "propose 1 1 1 new;decide accept 0;long;decide replace 0;long;"
        "take;report;take;report;answer;answer;wait 30;listen",
        "А one;ぁ own",
        "replaced",
    ),
    "one line deleted twice, and a kill": Ending(
        "plain",
        "А one;Б two;В three",
        "propose 1 1 0 new;decide accept 0;type 8 char;undo_key;long;take;answer;"
        "propose 1 1 0 new;save_file;close;decide accept 1;take;save_file;restart;open;"
        "undo 0 all;take;report;answer;wait 30;listen",
        "А one;Б two;В three",
        "undone stale",
    ),
    "one line deleted twice": Ending(
        "plain",
        "А one;Б two;В three",
        "propose 1 1 0 new;decide accept 0;type 8 char;undo_key;long;take;answer;"
        "propose 1 1 0 new;decide accept 1;take;report;answer;wait 5",
        "А one;В three",
        "conflict applied",
    ),
    "the user puts back what was deleted, then it is undone": Ending(
        "plain",
        "А one",
        "propose 0 1 0 new;decide accept 0;take;undo_key;report;undo 0",
        "А one",
        "applied",
    ),
    "one of two equal lines deleted, and the undo": Ending(
        "plain",
        "};};А one",
        "propose 0 1 0 new;decide accept 0;take;report;answer;undo 0;take;report;answer",
        "};};А one",
        "undone",
    ),
    "the user joins a line to the next one before it is deleted": Ending(
        "plain",
        "end А;return x Б",
        "propose 0 1 0 new;delete 23;decide accept 0;report;undo 0",
        "end Аreturn x Б",
        "conflict",
    ),
    "the user joins two lines below a new one before the first is deleted": Ending(
        "plain",
        "} А;x Б",
        "propose 0 1 0 x;decide accept 0;delete 3;type 0 line;report;undo 0",
        "一;} Аx Б",
        "conflict",
    ),
    "an edit put back, one above it, and a kill": Ending(
        "plain",
        "А one;Б two;В three",
        "propose 1 1 1 x;decide accept 0;take;report;answer;undo 0;take;report;answer;"
        "propose 0 1 1 y;undo 0;take;report;answer;decide accept 0;take;restart;wait 30;look",
        "각 y;가 x;В three",
        "applied applied",
    ),
}


class ToldWorld(EditWorld):
    """Remembers how it ended."""

    text = ""
    states: tuple[str, ...] = ()

    def finish(self) -> None:
        super().finish()
        ToldWorld.text, ToldWorld.states = self.desk.text, tuple(self._states.values())


@pytest.mark.parametrize("name", ENDINGS)
def test_a_story_ends_as_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ending = ENDINGS[name]
    kind = playing.Kind(edit_stories.draw, ToldWorld)
    monkeypatch.setattr(playing, "KINDS", {**playing.KINDS, "edits": kind})
    lines = "".join(f"| {line}\n" for line in ending.lines.split(";"))
    steps = ending.steps.replace("long", "wait 700\n" * 260).replace(";", "\n")
    story = parse_story(f"simulation 1 edits\neditor: {ending.editor}\n{lines}\n{steps}\n")
    with Stage() as stage:
        assert stage.play(story) is None
    states = [state for state in ToldWorld.states if state != "superseded"]
    assert (ToldWorld.text, states) == (
        ending.text.replace(";", "\n") + "\n",
        ending.states.split(),
    )
