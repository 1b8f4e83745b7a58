"""Recognises by name the files that can run code or steer an agent when edited (W11).

There are two tables, each line with its reason. Files that an editor, a language server or a shell
runs without an act of the user always need a yes. Files that run when the user builds or tests are
flagged on their hunks: there the user decides, and starts them.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from kode_sidecar.core.text.shown_text import invisible_characters

_OF_EDITORS = "editors run or obey them when the folder is opened"
_ASKED: Mapping[str, str] = {
    _OF_EDITORS: """
        .vscode/** .idea/** .devcontainer/** .zed/** .helix/** .fleet/** .devcontainer.json
        *.code-workspace .nvim.lua .nvimrc .exrc .vimrc .lvimrc .dir-locals*.el .ycm_extra_conf.py
        .luarc.json .luarc.jsonc .clangd .projectile""",
    "shells and version managers run them in the folder": """
        .envrc mise.toml .mise.toml .bashrc .bash_profile .bash_login .profile .zshrc .zshenv
        .zprofile .zlogin config.fish *.ps1xml authorized_keys crontab *.desktop""",
    "a build server runs them": """
        .github/** .gitlab/** .circleci/** .buildkite/** .gitea/** .forgejo/** .woodpecker/**
        .teamcity/** .ci/** .gitlab-ci.yml .travis.yml .drone.yml .woodpecker.yml appveyor.yml
        .appveyor.yml azure-pipelines*.yml bitbucket-pipelines.yml jenkinsfile* .cirrus.yml
        cloudbuild.y*ml""",
    "Git runs them at a commit, a checkout or a diff": """
        .githooks/** .husky/** .pre-commit-config.yaml lefthook.y*ml .lefthook.y*ml .gitmodules
        .gitattributes .gitconfig""",
    "agents take their orders from them": """
        .cursor/** .windsurf/** .claude/** .codex/** .gemini/** .kimi/** .roo/** .cline/**
        .continue/** .aider/** .kode/** .agents/** .agent/** .clinerules/** .windsurfrules/**
        .cursorrules/** .kilocode/** .amazonq/** .augment/** .qwen/** .opencode/** .trae/**
        .junie/** .goose/** .factory/** .openhands/** .amp/** .warp/** .crush/** .kiro/**
        .qoder/** .lingma/** .codebuddy/** .comate/** .rules/** .ruler/** .tabnine/** .cody/**
        .sourcegraph/** .copilot/** .zencoder/** .void/** .pearai/** .firebender/** .devin/**
        .prompts/** agent.md agents.md agents.*.md agents.override.md claude.md claude.*.md
        gemini.md gemini.*.md kimi.md qwen.md codex.md crush.md warp.md goose.md opencode.md
        replit.md skill.md copilot-instructions.md *.instructions.md *.prompt.md *.chatmode.md
        *.agent.md *.mdc .cursorrules .cursorignore .windsurfrules .clinerules .clineignore
        .roomodes .roorules .roorules-* .clinerules-* .rooignore .kilocodemodes .goosehints
        .rules .augment-guidelines .airules .aiexclude .aider* .codeiumignore .geminiignore
        .claudeignore .mcp.json mcp.json mcp.y*ml mcp_config.json .mcp.y*ml mcp-config.json
        .mcp-config.json .cursor.json .claude.json claude_desktop_config.json
        cline_mcp_settings.json opencode.json opencode.jsonc crush.json .crush.json
        .opencode.json .replit .kode.yaml .kode.yml kode.yaml kode.yml""",
    "Python imports them by itself, test discovery of editors too": """
        sitecustomize.py usercustomize.py *.pth conftest.py setup.py .pylintrc pylintrc .flake8
        mypy.ini .mypy.ini .pdbrc .pythonrc*""",
    "linters and formatters of editors load them when a file is opened or saved": """
        .eslintrc* eslint.config.* .prettierrc* prettier.config.* .stylelintrc* stylelint.config.*
        babel.config.* .babelrc* postcss.config.* tailwind.config.* svelte.config.* vitest.config.*
        jest.config.* .rubocop.yml .solargraph.yml .php-cs-fixer*.php .formatter.exs
        .golangci.y*ml .latexmkrc latexmkrc""",
    "package managers run their scripts at an install": """
        package.json composer.json deno.json deno.jsonc bunfig.toml .yarnrc .yarnrc.yml
        .pnpmfile.cjs binding.gyp gemfile *.gemspec""",
    "language servers evaluate them when the project is opened": """
        build.rs .cargo/** .mvn/** build.gradle* settings.gradle* init.gradle* gradle.properties
        gradle-wrapper.properties gradlew gradlew.bat mvnw mvnw.cmd directory.build.* *.targets
        *.props package.swift mix.exs build.zig rebar.config cmakepresets.json
        cmakeuserpresets.json .ghci hie.yaml .bsp/** omnisharp.json project.clj shadow-cljs.edn""",
    "debuggers and interpreters run them at their start": """
        .gdbinit .lldbinit .irbrc .pryrc .iex.exs .ocamlinit .rprofile startup.jl .inputrc""",
}
_FLAGGED: Mapping[str, str] = {
    "make and its relatives run it": """
        makefile* gnumakefile *.mk justfile .justfile taskfile.y*ml rakefile *.rake cmakelists.txt
        *.cmake meson.build sconstruct sconscript wscript build.ninja configure configure.ac
        build.sh""",
    "Python's build, test and task runners run it": """
        pyproject.toml setup.cfg tox.ini noxfile.py pytest.ini tasks.py fabfile.py manage.py
        dodo.py hatch_build.py""",
    "JavaScript's build and test runners run it": """
        tsconfig*.json jsconfig.json vite.config.* webpack.config.* rollup.config.*
        esbuild.config.* next.config.* nuxt.config.* astro.config.* metro.config.* gulpfile.*
        gruntfile.* karma.conf.* playwright.config.* cypress.config.* angular.json nx.json
        turbo.json lerna.json pnpm-workspace.yaml .mocharc*""",
    "the builds of other languages run it": """
        cargo.toml go.mod go.work *.csproj *.fsproj *.vbproj *.vcxproj *.sln pom.xml build.xml
        *.sbt build.sc build.bazel workspace.bazel module.bazel .bazelrc *.bzl stack.yaml
        *.cabal cabal.project setup.hs podfile fastfile pubspec.yaml dune dune-project deps.edn
        shard.yml phpunit.xml* phpstan.neon* .rspec capfile""",
    "containers and deployments run it": """
        dockerfile* *.dockerfile containerfile* docker-compose*.y*ml compose*.y*ml vagrantfile
        procfile tiltfile skaffold.yaml *.tf *.nix flake.lock ansible.cfg *.service""",
}

REFUSED_PATTERNS = (".git/**",)
SENSITIVE_PATTERNS = tuple(name for names in _ASKED.values() for name in names.split())
"""Names at any depth, for people to read."""
EDITOR_FOLDERS = tuple(name[:-3] for name in _ASKED[_OF_EDITORS].split() if name.endswith("/**"))
_BY_NAME = (*(name.removesuffix("/**") for name in SENSITIVE_PATTERNS),)
STEERING = {
    ".git": (
        *(
            "hooks",
            "info",
            "config",
            "config.worktree",
            "commondir",
            "gitdir",
            "remotes",
            "branches",
        ),
        *("objects/info/alternates", "objects/info/http-alternates"),
    ),
    ".hg": ("hgrc", "hgrc-not-shared", "sharedpath"),
    ".jj": ("repo/config.toml",),
}
"""The files in a version control folder that run code or redirect it; the others are data."""
_ASKED_WHY = {name: why for why, names in _ASKED.items() for name in names.split()}
_FLAGGED_WHY = {name: why for why, names in _FLAGGED.items() for name in names.split()}


_WORD = re.compile(r"[^\W\d_]+")
_LOOK_LATIN = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "LISU")


def fold_name(name: str) -> str:
    """Return a name as lenient file systems read it: no case, invisible characters or end dots."""
    if not name.isascii():
        name = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return name.partition(":")[0].rstrip(". ").casefold()


def matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a folded name matches a lower-case pattern; the only wildcard is `*`."""
    whole, begins, ends, others = _sorted_out(patterns)
    return (
        name in whole
        or name.startswith(begins)
        or name.endswith(ends)
        or any(other.match(name) for other in others)
    )


@lru_cache(16)
def _sorted_out(
    patterns: tuple[str, ...],
) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...], list[re.Pattern[str]]]:
    """Sort patterns into whole names, prefixes, suffixes, and those that need a regular expression.

    One expression for all of them takes milliseconds to compile, at the first tool call.
    """
    begins = tuple(one[:-1] for one in patterns if one.find("*") == len(one) - 1)
    ends = tuple(one[1:] for one in patterns if one.rfind("*") == 0)
    whole = frozenset(one for one in patterns if "*" not in one)
    sorted_out = {*whole, *(f"{one}*" for one in begins), *(f"*{one}" for one in ends)}
    others = [re.compile(translate(one)) for one in patterns if one not in sorted_out]
    return whole, begins, ends, others


def is_refused(parts: Sequence[str]) -> bool:
    """Return whether no edit is ever allowed there: Git's own folder."""
    return any(fold_name(part) == ".git" for part in parts)


def is_sensitive_name(name: str) -> bool:
    """Return whether a file or folder of that name always needs a yes, wherever it lies.

    `fold_name` cuts a name at a colon, which a name on disk may contain, so both forms are tested.
    """
    return any(matches_any(one, _BY_NAME) for one in {fold_name(name), name.casefold()})


def why_sensitive(parts: Sequence[str]) -> str | None:
    """Return why an edit there always needs an explicit yes; None if it does not.

    `parts` are the names below a root.
    """
    if is_refused(parts):
        return "It belongs to Git."
    return _reason(parts, _ASKED_WHY) or next(filter(None, map(_why_deceptive, parts)), None)


def _why_deceptive(name: str) -> str | None:
    """Return why people may take a name for another one, or None."""
    if name.isascii():
        return None
    hidden = invisible_characters(name)
    if hidden:
        return f"Its name holds characters that nobody sees: {', '.join(hidden)}."
    if unicodedata.normalize("NFKC", name).isascii():
        return "Its name looks like one in plain letters, and is another one."
    for word in _WORD.findall(name):
        kinds = {unicodedata.name(char, "").partition(" ")[0] for char in word}
        if "LATIN" in kinds and not kinds.isdisjoint(_LOOK_LATIN):
            return f"Its name mixes alphabets that look alike, in {word}."
    return None


def runs_in_build(parts: Sequence[str]) -> str | None:
    """Return why such a file runs when the user builds, tests or deploys; None otherwise."""
    return _reason(parts, _FLAGGED_WHY)


def _reason(parts: Sequence[str], table: Mapping[str, str]) -> str | None:
    names = [fold_name(part) for part in parts]
    for name in names:
        if f"{name}/**" in table:
            return f"Files like {name}/** can run code or steer an agent: {table[f'{name}/**']}."
    for pattern, why in table.items():
        if names and fnmatchcase(names[-1], pattern):
            return f"Files like {pattern} can run code or steer an agent: {why}."
    return None
