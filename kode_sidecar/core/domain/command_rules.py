"""Which commands of an agent run, which are asked for and which never run (F9, W12). Pure.

`domain.run_policy` is the same for jobs, where nobody can be asked.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from kode_sidecar.core.domain.command_risks import family, first_of, risks_of

CommandMode = Literal["off", "ask", "list"]
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


@dataclass(frozen=True)
class CommandVerdict:
    """What becomes of a command, and why: to the user in a question, to the model in a refusal."""

    effect: Literal["allow", "ask", "deny"]
    reason: str = ""
    risky: bool = False
    """It is asked for each time: no answer covers the next one."""


@dataclass(frozen=True)
class CommandRules:
    """The user's own, each the first words of a command. A denial wins.

    `ask`: what no rule allows is asked for. `list`: it does not run.
    """

    mode: CommandMode = "off"
    allow: Sequence[Sequence[str]] = ()
    deny: Sequence[Sequence[str]] = ()

    def verdict(
        self, argv: Sequence[str], file_name: str = "", elsewhere: str = ""
    ) -> CommandVerdict:
        """About one command. `file_name` is the real name of the program's file.

        `elsewhere` is an argument that leads out of the open folders, if there is one.
        """
        names = {argv[0], file_name or argv[0]}
        denied = next((rule for rule in self.deny if _denies(rule, names, argv)), None)
        if denied is not None:
            return CommandVerdict("deny", f"the user's settings deny `{shown_command(denied)}`")
        spelled_out = self._spelled_out(argv)
        if self.mode == "off" or (self.mode == "list" and not spelled_out):
            return CommandVerdict("deny", "the user's settings allow only what they list")
        why = self.risk(argv, file_name)
        if not why and elsewhere and elsewhere not in argv[:spelled_out]:
            why = f"{argv[0]} {elsewhere} leads out of the open folders"
        if why:
            return CommandVerdict("ask", f"{why}, so it is always asked for.", risky=True)
        if not spelled_out:
            return CommandVerdict("ask", "It is not among the commands that your settings allow.")
        return CommandVerdict("allow")

    def risk(self, argv: Sequence[str], file_name: str = "") -> str:
        """Return what a command runs or writes beside what its rule spells out; mostly empty."""
        names = {argv[0], file_name or argv[0]}
        risks = [risk for name in sorted(names) for risk in risks_of(name, argv)]
        return first_of(risks, self._spelled_out(argv))

    def _spelled_out(self, argv: Sequence[str]) -> int:
        """How many of its words the longest rule that allows it names; 0 if none does."""
        return max((len(one) for one in self.allow if _begins(one, argv)), default=0)


def shown_command(argv: Sequence[str]) -> str:
    """Return a command as people read it: no two look the same, and nothing hides in one."""
    return " ".join(map(_quoted, argv))


def _quoted(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\\''") + "'"
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    signs = (sign if sign.isprintable() else _escape(sign) for sign in escaped)
    return f"$'{''.join(signs)}'"


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def _begins(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """A permission is for these very words; the program's ending of Windows does not count."""
    program = re.sub(r"\.(exe|com)$", "", argv[0], flags=re.IGNORECASE)
    return bool(rule) and list(rule) == [program, *argv[1:]][: len(rule)]


def _denies(rule: Sequence[str], names: Collection[str], argv: Sequence[str]) -> bool:
    """A denial is for any version and spelling of the program, and for its words in any place.

    Words may be shortened, as some programs take them, and have options between them.
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
