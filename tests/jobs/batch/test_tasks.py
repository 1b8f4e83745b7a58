"""Tasks are read from lines or folders; what is wrong is named, and equal work is one. F10"""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch import plan_tasks
from tests.support.batch_world import BatchWorld
from tests.support.files import write


@pytest.fixture
def world(tmp_path: Path) -> BatchWorld:
    return BatchWorld(tmp_path)


def test_all_fields_of_a_line(world: BatchWorld) -> None:
    write(world.folder, {"repo/a.py": "1", "ask.md": "Fix {{ ticket }} for {{who}}."})
    world.write_tasks(
        {"id": "one"},
        {
            "id": "two",
            "prompt_file": "ask.md",
            "workspace": "repo",
            "set": {"model.name": "other", "runtime.timeout_seconds": 5},
            "variables": {"ticket": "#7", "who": "茶"},
        },
        {"id": "three", "prompt": "Keep {{this}}."},
    )
    one, two, three = plan_tasks(world.options())
    assert (one.prompt, one.workspace, one.model) == ("Do it.", "", "ide-chat")
    assert (two.prompt, two.model, two.timeout) == ("Fix #7 for 茶.", "other", 5.0)
    assert two.workspace == str(world.folder / "repo")
    assert three.prompt == "Keep {{this}}.", "without variables it is as it was written"


def test_a_folder_of_workspaces_or_of_prompts(world: BatchWorld) -> None:
    write(world.folder, {"all/my repo/a.py": "1", "all/b/a.py": "1", "all/.git/x": "1"})
    write(world.folder, {"all/first.md": "Do this.", "all/second.txt": "Do that."})
    folders = plan_tasks(world.options(tasks=world.folder / "all"))
    assert [one.id for one in folders] == ["b", "my-repo"]
    assert folders[1].workspace.endswith("my repo")
    prompts = plan_tasks(world.options(tasks=world.folder / "all", prompt=""))
    assert [(one.id, one.prompt) for one in prompts] == [
        ("first", "Do this."),
        ("second", "Do that."),
    ]


def test_folders_are_named_as_their_users_write(world: BatchWorld) -> None:
    write(
        world.folder,
        {f"all/{name}/a.py": "1" for name in ("茶铺", "店", "shop-茶", "_", "shop", "shop_")},
    )
    names = [one.id for one in plan_tasks(world.options(tasks=world.folder / "all"))]
    assert len(set(names)) == 6
    assert {"shop", "shop_"} <= set(names)
    assert {name.rpartition("-")[0] for name in names} == {"task", "shop", ""}
    again = [one.id for one in plan_tasks(world.options(tasks=world.folder / "all"))]
    assert names == again


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ({"id": "../x"}, "task id '../x' is refused"),
        ({"id": "twice"}, "twice is given twice"),
        ({"id": "a", "surprise": 1}, "line 2: Object contains unknown field `surprise`"),
        ({"prompt": "x"}, "line 2: .*missing required field `id`"),
        ({"id": "a", "workspace": "gone"}, "task a: There is no folder 'gone'"),
        ({"id": "a", "prompt_file": "gone.md"}, "task a: gone.md: there is no such file"),
        ({"id": "a", "prompt": "x", "prompt_file": "y"}, "task a: .* both"),
        ({"id": "a", "set": {"model.nonsense": 1}}, "task a: set model.nonsense: .*unknown field"),
        ({"id": "a", "prompt": "{{x}}", "variables": {"y": "1"}}, "task a: .*{{x}}"),
    ],
)
def test_what_is_wrong_is_named(world: BatchWorld, task: dict[str, Any], problem: str) -> None:
    world.write_tasks({"id": "TWICE"}, task)
    with pytest.raises(KodeError, match=problem) as caught:
        plan_tasks(world.options())
    assert caught.value.code == "ConfigInvalid"
    assert not world.out.exists()


def test_equal_work_has_one_fingerprint(world: BatchWorld) -> None:
    write(world.folder, {"repo/a.py": "1"})
    same = {"id": "a", "set": {"runtime.max_steps": 30}}
    different = (
        {"id": "a", "set": {"runtime.max_steps": 31}},
        {"id": "a", "workspace": "repo"},
        {"id": "a", "prompt": "Else."},
    )
    world.write_tasks({"id": "a"})
    print_of = plan_tasks(world.options())[0].fingerprint
    world.write_tasks(same)
    assert plan_tasks(world.options())[0].fingerprint == print_of, "a default that is spelt out"
    prints = {print_of}
    for task in different:
        world.write_tasks(task)
        prints.add(plan_tasks(world.options())[0].fingerprint)
    assert len(prints) == 4
