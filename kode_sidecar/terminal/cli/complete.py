"""Completion for shells: they ask the program itself, so that it is always up to date."""

import argparse
from collections.abc import Iterator, Mapping, Sequence

SCRIPTS: Mapping[str, str] = {
    "bash": """\
_kode_sidecar() {
  local IFS=$'\\n'
  COMPREPLY=($(kode-sidecar complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _kode_sidecar kode-sidecar
""",
    "zsh": """\
#compdef kode-sidecar
_kode_sidecar() {
  local -a found
  found=(${(f)"$(kode-sidecar complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _kode_sidecar kode-sidecar
""",
    "fish": """\
function __kode_sidecar
  set -l words (commandline -opc) (commandline -ct)
  kode-sidecar complete -- $words[2..-1] 2>/dev/null
end
complete -c kode-sidecar -a '(__kode_sidecar)'
""",
    "powershell": """\
Register-ArgumentCompleter -Native -CommandName kode-sidecar -ScriptBlock {
  param($word, $tree, $position)
  $words = @($tree.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
  if ($word -eq '') { $words += '""' }
  kode-sidecar complete -- @words 2>$null | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
""",
}
"""The completion script of each shell, printed by `kode-sidecar completion SHELL`."""


def completion_command(options: argparse.Namespace) -> int:
    """Print the completion script of a shell; return the exit code."""
    print(SCRIPTS[options.shell], end="")
    return 0


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> Iterator[str]:
    """Yield completions of the last of `words`, which may be empty; if none fit: no words."""
    *before, last = words or [""]
    last = last.strip('"')
    waiting: argparse.Action | None = None
    for word in before:
        actions = _actions(parser)
        commands = next((a for a in actions if isinstance(a.choices, dict)), None)
        if waiting is None and commands is not None and word in (commands.choices or ()):
            parser = dict(commands.choices or {})[word]
            continue
        named = next((a for a in actions if word in a.option_strings), None)
        waiting = named if named is not None and named.nargs != 0 else None
    for word in _expected(parser, waiting, last):
        if word.startswith(last):
            yield word


def _expected(
    parser: argparse.ArgumentParser, waiting: argparse.Action | None, last: str
) -> Iterator[str]:
    if waiting is not None:
        yield from map(str, waiting.choices or ())
        return
    for action in _actions(parser):
        if action.option_strings:
            yield from (name for name in action.option_strings if last.startswith("-"))
        elif action.choices and action.help != argparse.SUPPRESS:
            yield from map(str, action.choices)


def _actions(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    return parser._actions  # pyright: ignore[reportPrivateUsage] - there is no other way
