"""The policy of runs, where nobody can be asked: deny wins, dangerous tools are off (B9). Pure.

Conversations and runs use the same rules: `domain.permission.Rule`.
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
"""Tools and operations that need their own rule to be allowed."""

_LAUNCHER_WORDS = """
    sh bash zsh dash ksh csh tcsh fish ash busybox cmd powershell pwsh wscript cscript mshta
    rundll32 start env xargs nohup setsid timeout nice script ssh sudo su doas pkexec runas
"""
LAUNCHERS = frozenset(_LAUNCHER_WORDS.split())
"""Programs that run any other program: they run only if a rule names them."""


@dataclass(frozen=True)
class PolicyVerdict:
    """Whether a call is allowed; if not, `reason` says why, as the end of a sentence."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class Policy:
    """Rules in any order that together decide about every call.

    `deny` wins over `allow`. `ask` means no, because nobody is there. A sensitive subject needs a
    rule that allows it by name (W11), a dangerous operation a rule with the operation's name.
    """

    rules: tuple[Rule, ...] = ()

    def verdict(self, tool: str, subject: str, *, sensitive: bool = False) -> PolicyVerdict:
        """Decide about one call on one subject. `tool` is a name, or `name:operation`."""
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
        """Return whether to offer a tool to the model: some call of it may be allowed."""
        rules = self._about(tool)
        if any(rule.effect == "deny" and rule.covers(tool, "", sensitive=False) for rule in rules):
            return False
        return tool not in DANGEROUS or any(rule.effect == "allow" for rule in rules)

    def _about(self, tool: str) -> Sequence[Rule]:
        return [rule for rule in self.rules if _is_about(rule, tool)]


def effective_policy(
    *, shell: bool, delete: bool, servers: Sequence[str] = (), rules: Sequence[Rule] = ()
) -> Policy:
    """Return the policy for `tools.shell.enabled`, `tools.filesystem.delete` and `rules`.

    With the shell on, only the commands that rules allow run; if no rule allows any, all programs
    except `LAUNCHERS`. Likewise only the MCP tools that rules allow run; if no rule allows any, all
    tools of `tools.servers`.
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
    """Return a rule for all commands that begin with these words."""
    return Rule(RUN_COMMAND, command_path(words) + "**", effect)


def command_path(words: Sequence[str]) -> str:
    """Return a command as a path for rules: its words, the program without `.exe` or `.com`."""
    program = re.sub(r"\.(exe|com)$", "", words[0], flags=re.IGNORECASE)
    return "".join(f"{quote(word, safe=' ')}/" for word in (program, *words[1:]))


def named(rule: Rule) -> str:
    """Return a rule as text for people."""
    return f'"{rule.effect} {rule.tool} {rule.pattern}"'


def _is_about(rule: Rule, tool: str) -> bool:
    """Return whether a rule applies to `tool`; `allow` for a tool excludes its dangerous parts."""
    if rule.effect == "allow" and tool in DANGEROUS:
        return rule.tool == tool
    return tool == rule.tool or tool.startswith(f"{rule.tool}:")
