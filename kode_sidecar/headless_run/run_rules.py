"""The rules of a run's configuration as the effective policy of its tools (B9). Sans-IO."""

from collections.abc import Collection

from kode_sidecar.domain.permission import Rule
from kode_sidecar.domain.run_policy import RUN_COMMAND, Policy, command_rule, effective_policy
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.run_config import PermissionPart, ToolsPart

OPERATIONS = ("create", "move", "delete")
_EDITS = ("propose_edit", "propose_file")
_BY_PATH = frozenset({*_EDITS, "read_file", "write_artifact", RUN_COMMAND})
_ALL = "**"


def run_policy(config: ToolsPart, known: Collection[str]) -> Policy:
    """The policy of `tools`, for a run that knows the tools `known`.

    What is not in `offer` is denied. Raises KodeError `ConfigInvalid` for a rule that would have
    no effect, because its author believes that it has one.
    """
    rules = [_rule(part, known) for part in config.permissions]
    rules += [command_rule(words) for words in config.shell.allow]
    if config.offer is not None:
        for name in config.offer:
            _check_known(name, known, "tools.offer")
        rules += [Rule(name, _ALL, "deny") for name in sorted(set(known) - set(config.offer))]
    return effective_policy(
        shell=config.shell.enabled, delete=config.filesystem.delete, rules=rules
    )


def _rule(part: PermissionPart, known: Collection[str]) -> Rule:
    name, _, operation = part.tool.partition(":")
    _check_known(name, known, "tools.permissions")
    if operation and (name not in _EDITS or operation not in OPERATIONS):
        raise _invalid(
            f"{part.tool!r} is nothing a tool does; write propose_file:create, :move or :delete"
        )
    if part.path != _ALL and name not in _BY_PATH:
        raise _invalid(
            f'{name} is allowed or denied as a whole: leave out `path` or write "{_ALL}"; what it '
            "must not find is kept out by workspace.exclude"
        )
    if name == RUN_COMMAND and part.path != _ALL:
        return command_rule(part.path.split(), part.effect)
    return Rule(part.tool, part.path, part.effect)


def _check_known(name: str, known: Collection[str], field: str) -> None:
    if name not in known:
        raise _invalid(f"there is no tool {name!r}; there are {', '.join(sorted(known))}", field)


def _invalid(problem: str, field: str = "tools.permissions") -> KodeError:
    return KodeError("ConfigInvalid", f"`{field}`: {problem}.", details={"field": field})
