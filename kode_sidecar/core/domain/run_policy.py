"""The effective policy where nobody can be asked: deny wins, what is dangerous is off (B9). Pure.

One notion of permission serves the conversation and the runs: `domain.permission.Rule`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from kode_sidecar.core.domain.permission import Effect, Rule, deciding_rule

RUN_COMMAND = "run_command"
MCP = "mcp"
DELETES = ("propose_file:delete", "propose_edit:delete")
DANGEROUS = frozenset({RUN_COMMAND, MCP, *DELETES})
"""What needs a rule of its own that allows it."""

_LAUNCHER_WORDS = """
    sh bash zsh dash ksh csh tcsh fish ash busybox cmd powershell pwsh wscript cscript mshta
    rundll32 start env xargs nohup setsid timeout nice script ssh sudo su doas pkexec runas
"""
LAUNCHERS = frozenset(_LAUNCHER_WORDS.split())
"""Programs that run any other one: they run only where a rule names them."""


@dataclass(frozen=True)
class PolicyVerdict:
    """Whether something may be done; if not, why, as the end of a sentence."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class Policy:
    """Rules in any order; together they decide about everything.

    A denial wins over any permission. `ask` is a no: nobody is there. A sensitive subject needs a
    rule that allows it by its own name (W11), a dangerous operation one with that operation's name.
    """

    rules: tuple[Rule, ...] = ()

    def verdict(self, tool: str, subject: str, *, sensitive: bool = False) -> PolicyVerdict:
        """About one call on one subject. `tool` is a name, or `name:operation`."""
        rule = deciding_rule(self._about(tool), tool, (subject,), sensitive=sensitive)
        if rule is None and tool in DANGEROUS:
            return PolicyVerdict(
                False, "it is off by default and no rule of the configuration allows it"
            )
        if rule is None and sensitive:
            return PolicyVerdict(False, "the configuration would have to allow it by its very name")
        if rule is None or rule.effect == "allow":
            return PolicyVerdict(True)
        if rule.effect == "ask":
            return PolicyVerdict(
                False, f"the rule {named(rule)} wants a person asked, and nobody is here"
            )
        return PolicyVerdict(False, f"the rule {named(rule)} denies it")

    def offers(self, tool: str) -> bool:
        """Whether a model should be told of a tool at all: some call of it may be allowed."""
        rules = self._about(tool)
        if any(rule.effect == "deny" and rule.covers(tool, "", sensitive=False) for rule in rules):
            return False
        return tool not in DANGEROUS or any(rule.effect == "allow" for rule in rules)

    def _about(self, tool: str) -> Sequence[Rule]:
        return [rule for rule in self.rules if _is_about(rule, tool)]


def effective_policy(
    *, shell: bool, delete: bool, servers: Sequence[str] = (), rules: Sequence[Rule] = ()
) -> Policy:
    """The policy of the switches `tools.shell.enabled` and `tools.filesystem.delete`, and `rules`.

    With the shell on and commands named by rules that allow them, only these run; else all
    programs but `LAUNCHERS`. Of the MCP servers of `tools.servers` the tools run that rules allow;
    without such a rule all.
    """
    names_tools = any(rule.tool == MCP and rule.effect == "allow" for rule in rules)
    names_commands = any(rule.tool == RUN_COMMAND and rule.effect == "allow" for rule in rules)
    kept = [rule for rule in rules if shell or rule.effect != "allow" or rule.tool != RUN_COMMAND]
    if shell and not names_commands:
        kept.append(Rule(RUN_COMMAND, "**"))
        kept += [command_rule([name], "deny") for name in sorted(LAUNCHERS)]
    kept += [Rule(operation, "**") for operation in DELETES if delete]
    kept += [Rule(MCP, f"{name}/**") for name in servers if not names_tools]
    return Policy(tuple(kept))


def command_rule(words: Sequence[str], effect: Effect = "allow") -> Rule:
    """Return a rule about all commands that begin with these words."""
    return Rule(RUN_COMMAND, command_path(words) + "**", effect)


def command_path(words: Sequence[str]) -> str:
    """A command as rules see it: a path of words, the program without the ending of Windows."""
    program = re.sub(r"\.(exe|com)$", "", words[0], flags=re.IGNORECASE)
    return "".join(f"{quote(word, safe=' ')}/" for word in (program, *words[1:]))


def named(rule: Rule) -> str:
    """Return a rule as people read it."""
    return f'"{rule.effect} {rule.tool} {rule.pattern}"'


def _is_about(rule: Rule, tool: str) -> bool:
    """Return whether a rule decides: a permission for a whole tool leaves its dangers out."""
    if rule.effect == "allow" and tool in DANGEROUS:
        return rule.tool == tool
    return tool == rule.tool or tool.startswith(f"{rule.tool}:")
