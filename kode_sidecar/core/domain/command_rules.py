"""Decides which commands of an agent run, need approval, or never run (F9, W12). Pure.

`domain.run_policy` does this for jobs, where nobody can be asked.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from kode_sidecar.core.domain.command_risks import family, first_of, risks_of
from kode_sidecar.core.domain.known_arguments import Risk
from kode_sidecar.core.text.shown_text import hides_nothing

CommandMode = Literal["off", "ask", "list"]
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


@dataclass(frozen=True)
class CommandVerdict:
    """The decision about a command. `reason` is for the user's question or the model's refusal."""

    effect: Literal["allow", "ask", "deny"]
    reason: str = ""
    risky: bool = False
    """The user is asked each time: no answer covers the next command."""


@dataclass(frozen=True)
class CommandRules:
    """The user's rules, each the first words of a command. `deny` wins.

    A command that no rule allows needs approval with the mode `ask`, and never runs with `list`.
    """

    mode: CommandMode = "off"
    allow: Sequence[Sequence[str]] = ()
    deny: Sequence[Sequence[str]] = ()

    def verdict(
        self,
        argv: Sequence[str],
        file_name: str = "",
        elsewhere: str = "",
        files: Sequence[Risk] = (),
    ) -> CommandVerdict:
        """Decide about one command. `file_name` is the real name of the program's file.

        `elsewhere` is an argument that leads out of the open folders, if there is one, and `files`
        are risks because of the files that the command names or reaches.
        """
        names = {argv[0], file_name or argv[0]}
        denied = next((rule for rule in self.deny if _denies(rule, names, argv)), None)
        if denied is not None:
            why = f"the user's settings (`commands.deny`) deny `{shown_command(denied)}`"
            return CommandVerdict("deny", why)
        spelled_out = self._spelled_out(argv)
        if self.mode == "off" or (self.mode == "list" and not spelled_out):
            why = f"the user's settings (`commands.run: {self.mode}`) allow only what they list"
            return CommandVerdict("deny", why)
        why = next((one.why for one in files if one.at >= spelled_out), "")
        why = why or self.risk(argv, file_name)
        if not why and elsewhere and elsewhere not in argv[:spelled_out]:
            why = f"{argv[0]} {elsewhere} leads out of the open folders"
        if why:
            return CommandVerdict("ask", f"{why}, so it is always asked for.", risky=True)
        if not spelled_out:
            return CommandVerdict("ask", "It is not among the commands that your settings allow.")
        return CommandVerdict("allow")

    def risk(self, argv: Sequence[str], file_name: str = "") -> str:
        """Return what a command runs or writes beyond the words of its rule; often empty."""
        names = {argv[0], file_name or argv[0]}
        risks = [risk for name in sorted(names) for risk in risks_of(name, argv)]
        return first_of(risks, self._spelled_out(argv))

    def _spelled_out(self, argv: Sequence[str]) -> int:
        """Return the number of words in the longest rule that allows it; 0 if none does."""
        return max((len(one) for one in self.allow if _begins(one, argv)), default=0)


_INTERPRETERS = (
    *("python", "pythonw", "pypy", "py", "node", "nodejs", "deno", "bun", "ruby", "perl", "php"),
    *("lua", "luajit", "java", "dotnet"),
)
_RUNNERS = ("run", "run-script", "exec", "compose")


def lasting_rule(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the first words that name what a command does: its program and leading arguments.

    That is `pytest` of `pytest -q tests`, `git diff` of `git diff HEAD`, `npm run test`, and of an
    interpreter the script or the module: `python -m pytest`.
    """
    words = [re.sub(r"\.(exe|com)$", "", argv[0], flags=re.IGNORECASE), *argv[1:]]
    if family(words[0]) in _INTERPRETERS:
        script = next((at for at in range(1, len(words)) if not words[at].startswith("-")), 0)
        return tuple(words[: script + 1] if script else words)
    plain = 1
    while plain < min(len(words), 3) and re.fullmatch(r"[A-Za-z][\w:-]*", words[plain]):
        plain += 1
        if words[plain - 1] not in _RUNNERS:
            break
    return tuple(words[:plain])


def shown_command(argv: Sequence[str]) -> str:
    """Return a command for display: no two look the same, and nothing is hidden."""
    return " ".join(map(_quoted, argv))


def _quoted(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    if hides_nothing(word):
        return "'" + word.replace("'", "'\\''") + "'"
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    signs = (sign if hides_nothing(sign) else _escape(sign) for sign in escaped)
    return f"$'{''.join(signs)}'"


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def _begins(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Return whether `argv` begins with exactly these words, `.exe` and `.com` ignored."""
    program = re.sub(r"\.(exe|com)$", "", argv[0], flags=re.IGNORECASE)
    return bool(rule) and list(rule) == [program, *argv[1:]][: len(rule)]


def _denies(rule: Sequence[str], names: Collection[str], argv: Sequence[str]) -> bool:
    """Return whether a denial covers a command: any version or spelling of the program.

    The words may have options between them, and be shortened, as some programs allow.
    """
    if not rule or family(rule[0]) not in map(family, names):
        return False
    left = iter(word.casefold() for word in argv[1:] if word)
    return all(any(_may_mean(word, wanted.casefold()) for word in left) for wanted in rule[1:])


def _may_mean(word: str, denied: str) -> bool:
    if denied.startswith("-"):
        name = word.split("=", 1)[0]
        return len(name.lstrip("-")) > 0 and denied.startswith(name)
    return not word.startswith("-") and denied.startswith(word)
