"""Targets of edits that can run code or steer an agent, by name (W11)."""

import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

_FOLDER_WORDS = """
    .vscode .idea .devcontainer .zed .helix .fleet
    .github .gitlab .circleci .buildkite .gitea .forgejo .woodpecker .teamcity .ci
    .githooks .husky
    .cursor .windsurf .claude .codex .gemini .kimi .roo .cline .continue .aider .kode .agents
"""
_FILE_WORDS = """
    *.code-workspace .nvim.lua .nvimrc .exrc .vimrc .lvimrc .dir-locals.el
    .envrc mise.toml .mise.toml
    .gitlab-ci.yml .travis.yml .drone.yml .woodpecker.yml appveyor.yml .appveyor.yml
    azure-pipelines*.yml bitbucket-pipelines.yml jenkinsfile* .cirrus.yml cloudbuild.y*ml
    .pre-commit-config.yaml lefthook.y*ml .lefthook.y*ml .gitmodules .gitattributes .gitconfig
    .devcontainer.json
    agents.md agents.*.md claude.md claude.*.md gemini.md kimi.md skill.md .cursorrules
    .windsurfrules .clinerules .roomodes .roorules .aider.conf.yml
    .mcp.json mcp.json mcp_config.json
    package.json composer.json deno.json deno.jsonc bunfig.toml .yarnrc .yarnrc.yml .pnpmfile.cjs
    setup.py build.rs binding.gyp
    .kode.yaml .kode.yml kode.yaml kode.yml
"""
_FOLDERS = frozenset(_FOLDER_WORDS.split())
_FILES = tuple(_FILE_WORDS.split())

REFUSED_PATTERNS = (".git/**",)
SENSITIVE_PATTERNS = (*sorted(f"{name}/**" for name in _FOLDERS), *_FILES)
"""Names at any depth, as people read them."""


def fold_name(name: str) -> str:
    """A name as lenient file systems read it: no case, no invisible characters, no tail dots."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return visible.partition(":")[0].rstrip(". ").casefold()


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether a folded name matches one of some lower-case wildcards."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_refused(parts: Sequence[str]) -> bool:
    """Whether no edit is ever allowed there: Git's own folder."""
    return any(fold_name(part) == ".git" for part in parts)


def sensitive_pattern(parts: Sequence[str]) -> str | None:
    """The pattern by which an edit there always needs an explicit yes; None if it does not.

    `parts` lead down from a root.
    """
    if is_refused(parts):
        return REFUSED_PATTERNS[0]
    names = [fold_name(part) for part in parts]
    folder = next((name for name in names if name in _FOLDERS), None)
    if folder is not None:
        return f"{folder}/**"
    files = (pattern for pattern in _FILES if names and fnmatchcase(names[-1], pattern))
    return next(files, None)
