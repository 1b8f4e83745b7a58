"""Patterns mean what git takes them for, and none takes long."""

import random
import time
from pathlib import Path

import pytest

from kode_sidecar.infrastructure.workspace.glob_pattern import GlobPattern, for_ripgrep
from kode_sidecar.infrastructure.workspace.globs import compile_glob
from tests.support.git import git

PIECES = [*"ab*?.c-", "**", "[ab]", "[!a]", "[a-b]", "[]a]", "[[:alpha:]]", "\\a"]


def fits(line: str, path: str) -> bool:
    """Whether the rule ignores the file, itself or by a folder on the way."""
    rule, parts = GlobPattern.parse(line), path.split("/")
    counts = range(1, len(parts) + 1)
    return rule is not None and any(
        rule.matches(parts[:count], folder=count < len(parts)) for count in counts
    )


def test_rules_mean_what_git_takes_them_for(tmp_path: Path, rng: random.Random) -> None:
    git(tmp_path, "init", "-q")
    rules: dict[str, str] = {}
    for number in range(300):
        names = ["".join(rng.choices("aabbc-.", k=rng.randint(1, 3))) for _ in range(3)]
        path = f"d{number}/" + "/".join(name + "x" * (set(name) == {"."}) for name in names)
        pieces = ["".join(rng.choices(PIECES, k=rng.randint(1, 4))) for _ in range(2)]
        pieces.append(rng.choice(["**", "a", "b"]))
        rng.shuffle(pieces)
        line = rng.choice(["", "/", "", "/", "a**/", "/b***/"]) + "/".join(
            pieces[: rng.randint(1, 3)]
        )
        rules[path] = line + rng.choice(["", "", "/"])
        file = tmp_path / path
        file.parent.mkdir(parents=True)
        file.touch()
        (tmp_path / f"d{number}" / ".gitignore").write_text(rules[path] + "\n")
    listed = git(tmp_path, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    ignored = set(listed.split("\0"))
    for path, line in rules.items():
        assert fits(line, path.partition("/")[2]) == (path in ignored), (line, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 20 + "b", "a" * 255),
        ("**/a*/" * 20 + "b", "a/" * 400 + "c"),
        ("a*" * 2_000, "a" * 255),
        ("[a-z]*" * 100 + "0", "a" * 255),
        ("**/" * 1_000 + "b", "a/" * 1_000 + "c"),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    assert not compile_glob(pattern)(path)


@pytest.mark.parametrize(
    "line",
    [
        *("[" * 200_000, "[" * 100_000 + "\\]", "[a-" * 60_000, "[[:alpha:]" * 20_000),
        *("a" + " " * 300_000 + "x", "[!" * 90_000),
    ],
    ids=lambda line: line[:12],
)
def test_a_line_that_was_made_to_be_slow_is_not(line: str) -> None:
    """Each took minutes at least, from a `.gitignore` of the project or a call of the model."""
    begun = time.process_time()
    pattern = GlobPattern.parse(line)
    assert pattern is not None
    assert not pattern.matches(["a" * 200], folder=False)
    for_ripgrep(line)
    assert time.process_time() - begun < 30


def test_the_blanks_at_the_end_of_a_line() -> None:
    lines = ["a ", "a\t\r", "a\\  ", "a b ", "a\\ ", "a"]
    parsed = [GlobPattern.parse(line) for line in lines]
    names = [pattern and pattern.segments[-1] for pattern in parsed]
    assert names == ["a", "a", "a\\ ", "a b", "a\\ ", "a"]
