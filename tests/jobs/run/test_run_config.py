"""What a configuration may say, and how it is told what is wrong with it (B2)."""

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.run_config import Overrides, parse_run_config

SMALLEST = """\
kgent: {schema_version: 1}
profile: {id: reviewer, role: You review code.}
"""


def refusal(text: str) -> KodeError:
    with pytest.raises(KodeError) as refused:
        parse_run_config(text, "job.yaml")
    return refused.value


# B2
def test_little_has_to_be_said() -> None:
    config = parse_run_config(SMALLEST, "job.yaml")
    assert config.model.name == "ide-chat"
    assert not config.tools.shell.enabled
    assert not config.tools.filesystem.delete
    assert config.memory.write_mode == "candidate"
    assert (config.runtime.stream, config.runtime.max_steps) == (True, 30)


# B2
@pytest.mark.parametrize(
    ("added", "reported"),
    [
        ("runtime: {max_steps: many}", "line 3: `runtime.max_steps`: expected `int`, got `str`"),
        ("runtime:\n  max_steps: 0", "line 4: `runtime.max_steps`: expected `int` >= 1"),
        (
            "tools:\n  shell:\n    enable: true",
            "line 5: `tools.shell.enable`: object contains unknown",
        ),
        ("tool: {}", "line 3: `tool`: object contains unknown field"),
        ("deliverables:\n- path: deliverables/a.md\n- required: true", "line 5: `deliverables[1]`"),
        (
            "deliverables:\n- path: deliverables/a.md\n- path: workspace/b.md",
            "line 5: `deliverables[1].path`: a required deliverable lies under deliverables/",
        ),
        (
            "deliverables:\n- path: deliverables/a.md\n- path: deliverables/A.md",
            "line 5: `deliverables[1].path`: this deliverable is given twice",
        ),
        ("memory:\n  write_mode: external", "line 4: `memory.write_mode`: `external` needs"),
        ("runtime: {engine: scripted}", "line 3: `runtime`: the engine `scripted`"),
        ("profile: {id: b, role: c}", "line 3, column 1: not valid YAML: the key `profile` is"),
        ("skills:\n  enabled: [../up]", "line 4: `skills.enabled[0]`: expected `str` matching"),
        ("tools:\n  permissions:\n  - {tool: x, path: a*b, effect: deny}", "line 5: `tools.perm"),
    ],
)
def test_an_error_names_file_line_and_field(added: str, reported: str) -> None:
    error = refusal(f"{SMALLEST}{added}\n")
    assert error.code == "ConfigInvalid"
    assert error.message.startswith(f"job.yaml, {reported}"), error.message


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("profile: {id: a, role: b}", "job.yaml, line 1: object missing required field `kgent`"),
        ("kgent: {schema_version: 2}\nprofile: {id: a, role: b}", "job.yaml, line 1: `kgent.sche"),
        ("- a", "job.yaml, line 1: expected `object`, got `array`"),
        ("", "job.yaml, line 1: expected `object`, got `null`"),
        ("a: [", "job.yaml, line 1, column 5: not valid YAML"),
        ("1: 2", "job.yaml, line 1: `key` in `$`: expected `str`"),
    ],
)
def test_what_is_required_is_missed(text: str, reported: str) -> None:
    assert refusal(text).message.startswith(reported), refusal(text).message


# B2 W11
@pytest.mark.parametrize(
    "path",
    [
        "../out.md",
        "deliverables/../../out.md",
        "/etc/passwd",
        "C:\\\\out.md",
        "C:out.md",
        "\\\\\\\\host\\\\share\\\\x",
        "deliverables/CON",
        "deliverables/a.md:stream",
        "deliverables/a.md.",
        "deliverables/PROGRA~1/x",
        "logs/x.md",
        "run.json",
        "deliverables",
    ],
)
def test_an_unsafe_deliverable_is_refused_with_its_place(path: str) -> None:
    error = refusal(f'{SMALLEST}deliverables:\n  - required: true\n    path: "{path}"\n')
    assert error.code == "PathOutsideRoots"
    assert error.message.startswith("job.yaml, line 5: `deliverables[0].path`: ")


# B1
@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        ("model.temperature", "hot", "set model.temperature: `model.temperature`: expected"),
        ("nonsense.deep", 1, "set nonsense.deep: `nonsense`: object contains unknown field"),
        ("deliverables", [{"path": "x.md"}], "set deliverables: `deliverables[0].path`: The path"),
    ],
)
def test_what_is_set_wrongly_is_not_blamed_on_a_line(
    path: str, value: object, reported: str
) -> None:
    with pytest.raises(KodeError) as refused:
        parse_run_config(SMALLEST, "job.yaml", Overrides(fields={path: value}))
    assert refused.value.message.startswith(reported)
    assert refused.value.details["line"] == 0


def test_what_the_file_lacks_is_not_blamed_on_what_is_set_beside_it() -> None:
    text = f"{SMALLEST}runtime: {{engine: scripted}}\n"
    with pytest.raises(KodeError) as refused:
        parse_run_config(text, "job.yaml", Overrides(fields={"runtime.max_steps": 5}))
    assert refused.value.message.startswith("job.yaml, line ")


def test_the_command_line_is_laid_over_the_file() -> None:
    overrides = Overrides(stream=False, max_steps=3, timeout_seconds=5, model="other")
    config = parse_run_config(SMALLEST, "job.yaml", overrides)
    runtime = config.runtime
    assert (runtime.stream, runtime.max_steps, runtime.timeout_seconds) == (False, 3, 5)
    assert config.model.name == "other"
    with pytest.raises(KodeError, match=r"command line: .*>= 1.*max_steps"):
        parse_run_config(SMALLEST, "job.yaml", Overrides(max_steps=0))
