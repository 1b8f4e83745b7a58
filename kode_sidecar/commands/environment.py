"""What a command gets of our environment: an allow-list without keys (W14). Pure."""

import re
from collections.abc import Mapping, Sequence

from kode_sidecar.errors import KodeError

_KEPT_WORDS = """
    PATH HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR TEMP TMP
    LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE HOMEDRIVE HOMEPATH
    APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
"""
KEPT_NAMES = frozenset(_KEPT_WORDS.split())

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
# A loader or an interpreter told by these to run other code would go round the policy.
_LOADER_NAME = re.compile(
    r"LD_.*|DYLD_.*|PYTHONSTARTUP|PYTHONPATH|NODE_OPTIONS|BASH_ENV|ENV|PERL5OPT|RUBYOPT"
    r"|JAVA_TOOL_OPTIONS|GIT_.*",
    re.IGNORECASE,
)


def check_names(names: Sequence[str]) -> None:
    """Whether these may be kept beside `KEPT_NAMES`. Raises KodeError `ConfigInvalid`."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise KodeError("ConfigInvalid", f"{name!r} is no name of an environment variable.")
        if _SECRET_NAME.search(name):
            raise KodeError(
                "ConfigInvalid",
                f"The environment variable {name} is never given to a command: by its name it "
                "holds a key. Have the command read it from a file of your own.",
            )
        if _LOADER_NAME.fullmatch(name):
            raise KodeError(
                "ConfigInvalid",
                f"The environment variable {name} is never given to a command: it decides what "
                "code the command runs.",
            )


def command_environment(
    environ: Mapping[str, str], path: str, ceiling: str, more: Sequence[str] = ()
) -> dict[str, str]:
    """The environment of a command. `path` is the search path it was found by.

    `more` are names that `check_names` has passed. Git looks for a repository below `ceiling` only:
    a sandbox inside of one is none of it.
    """
    wanted = KEPT_NAMES | {name.upper() for name in more}
    kept = {name: value for name, value in environ.items() if name.upper() in wanted}
    kept = {name: value for name, value in kept.items() if name.upper() != "PATH"}
    return {
        **kept,
        "PATH": path,
        "GIT_CEILING_DIRECTORIES": ceiling,
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
