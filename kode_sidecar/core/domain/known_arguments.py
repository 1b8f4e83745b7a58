"""Finds arguments of the usual tools that are not known to be harmless. Pure; mostly a table.

`domain.command_risks` lists what is dangerous, for any program. A tool grows new options, and
loads code by more of them than anybody lists, so for the usual tools it is the other way round:
what stands here does no more than run the tool on the files that are named, and everything else
needs approval. The table errs on the side of asking.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple


class Risk(NamedTuple):
    """The index of a word in a command (the program is 0), and why it needs approval."""

    at: int
    why: str


Words = Sequence[tuple[int, str]]
"""Arguments with their indexes in the command."""


@dataclass(frozen=True)
class KnownTool:
    """The harmless arguments of some tools, options without their dashes.

    `flags` take no value; those of one letter may be bundled. `values` take one, the next word or
    glued: `name`, or `name=A|B` if only these values are harmless. A name may hold a `*`. The first
    operand has to be among `commands`, if there are any. Operands from the number `most` on write
    or run something. With `passes`, what follows `--` are options of another program, of which
    these are harmless. `single`: one dash may precede a long name.
    """

    programs: str
    flags: str = ""
    values: str = ""
    commands: str = ""
    most: int = 1_000_000
    passes: "KnownTool | None" = None
    single: bool = False
    names: Mapping[str, str | None] = field(init=False, default_factory=dict[str, str | None])

    def risks(self, tool: str, arguments: Words) -> Iterator[Risk]:
        """Yield a risk for each argument that is not known to be harmless."""
        operands, rest = 0, list(arguments)
        while rest:
            at, word = rest.pop(0)
            if word == "--" and self.passes is not None:
                yield from self.passes.risks(f"{tool} --", rest)
                return
            if word == "--":
                rest = [(index, f"./{one}" if one[:1] == "-" else one) for index, one in rest]
            elif word.startswith("-") and word != "-":
                following = rest[0][1] if rest and not _OPTION.match(rest[0][1]) else None
                known, takes_next = self._option(word, following)
                if not known:
                    yield Risk(at, f"{tool} {word} is not known to be harmless")
                if takes_next:
                    rest.pop(0)
            else:
                operands += 1
                if operands == 1 and self.commands and word not in self.commands.split():
                    yield Risk(at, f"{tool} {word} is not known to be harmless")
                if operands > self.most:
                    yield Risk(at, f"{tool} writes or runs {word}, which comes after the others")

    def _option(self, word: str, following: str | None) -> tuple[bool, bool]:
        """Return whether an option is harmless, and whether the following word is its value."""
        if word.startswith("--") or self.single:
            name, given, value = word.lstrip("-").partition("=")
            if given:
                return self._has_value(name, value), False
            if _is_among(name, self.flags):
                return True, False
            known = following is not None and self._has_value(name, following)
            return known, known
        for place, letter in enumerate(word[1:], 2):
            glued = word[place:]
            if glued and self._has_value(letter, glued.removeprefix("=")):
                return True, False
            flag = _is_among(letter, self.flags)
            if not glued and following and self._has_value(letter, following, listed=flag):
                return True, True
            if not flag:
                return False, False
        return True, False

    def _has_value(self, name: str, value: str, *, listed: bool = False) -> bool:
        """Return whether a value is harmless for an option; `listed`: only if it is named there."""
        return any(
            fnmatchcase(name, known)
            and (_is_among(value, among.replace("|", " ")) if among else not listed)
            for known, _, among in (one.partition("=") for one in self.values.split())
        )


_OPTION = re.compile(r"-(?!\d)")


def _is_among(name: str, names: str) -> bool:
    return any(fnmatchcase(name, one) for one in names.split())


_PYTEST = KnownTool(
    "pytest py.test",
    flags="""v q x s l h verbose quiet exitfirst showlocals lf last-failed ff failed-first nf
    new-first sw stepwise sw-skip stepwise-skip co collect-only no-header no-summary version
    markers fixtures full-trace disable-warnings disable-pytest-warnings strict strict-markers
    strict-config no-cov cov cache-clear runxfail setup-show setup-plan""",
    values="""k m n r tb maxfail durations durations-min color capture deselect ignore ignore-glob
    numprocesses dist maxprocesses timeout cov cov-report=term|term-missing import-mode
    show-capture lfnf last-failed-no-failures verbosity reruns
    c=pytest.ini|pyproject.toml|tox.ini|setup.cfg p=no:* randomly-seed""",
)
_MYPY = KnownTool(
    "mypy dmypy",
    flags="""v h V verbose version strict pretty no-pretty show-* hide-* no-* disallow-* warn-*
    allow-* check-untyped-defs ignore-missing-imports implicit-optional strict-* extra-checks
    namespace-packages explicit-package-bases local-partial-types skip-version-check stats
    enable-incomplete-feature scripts-are-modules incremental""",
    values="""follow-imports python-version platform exclude p package m module enable-error-code
    disable-error-code always-true always-false output=json""",
)
_PYLINT = KnownTool(
    "pylint",
    flags="""E v h errors-only verbose version long-help list-msgs list-msgs-enabled list-groups
    recursive""",
    values="""d e j r s disable enable jobs reports score recursive ignore ignore-patterns
    ignore-paths max-* min-* msg-template fail-under fail-on confidence from-stdin
    f=text|json|json2|colorized|parseable|msvs|github
    output-format=text|json|json2|colorized|parseable|msvs|github""",
)
_RUFF = KnownTool(
    "ruff",
    flags="""h V q v s e n version quiet verbose silent fix no-fix unsafe-fixes no-unsafe-fixes
    diff show-fixes show-files show-settings statistics exit-zero exit-non-zero-on-fix preview
    no-preview no-cache check force-exclude no-force-exclude respect-gitignore isolated ignore-noqa
    add-noqa fix-only all""",
    values="""select ignore extend-select extend-ignore per-file-ignores exclude extend-exclude
    line-length target-version output-format color range fixable unfixable""",
    commands="check format rule version linter help",
)
_BLACK = KnownTool(
    "black",
    flags="""h q v S C check diff color no-color quiet verbose version fast safe pyi preview
    skip-string-normalization skip-magic-trailing-comma""",
    values="l t line-length target-version include exclude extend-exclude force-exclude W workers",
)
_ISORT = KnownTool(
    "isort",
    flags="h q v V c check check-only diff df quiet verbose version vn float-to-top",
    values="""l line-length w j jobs s skip sg skip-glob
    profile=black|django|pycharm|google|open_stack|plone|attrs|hug|wemake|appnexus""",
)
_FLAKE8 = KnownTool(
    "flake8 pycodestyle pyflakes pydocstyle",
    flags="h q v count statistics show-source benchmark version quiet verbose disable-noqa",
    values="""select ignore extend-ignore extend-select max-* exclude extend-exclude filename j
    jobs per-file-ignores color format=default|pylint indent-size""",
)
_UNITTEST = KnownTool(
    "unittest",
    flags="v q f b c verbose quiet failfast buffer catch locals h",
    values="k p durations",
)
_ESLINT = KnownTool(
    "eslint",
    flags="""h v version fix fix-dry-run quiet color no-color no-inline-config debug
    no-error-on-unmatched-pattern pass-on-no-patterns report-unused-disable-directives no-ignore
    exit-on-fatal-error cache no-cache""",
    values="""ext max-warnings ignore-pattern fix-type env
    f=stylish|json|compact|unix|visualstudio|html|junit|checkstyle|tap
    format=stylish|json|compact|unix|visualstudio|html|junit|checkstyle|tap
    report-unused-disable-directives-severity""",
)
_MOCHA = KnownTool(
    "mocha",
    flags="""h V i b c C A p S version help invert bail recursive exit forbid-only forbid-pending
    parallel color colors no-color no-colors check-leaks full-trace diff no-diff inline-diffs
    dry-run sort delay async-only allow-uncaught fail-zero no-timeouts""",
    values="""g f t s j grep fgrep timeout timeouts slow jobs retries extension
    R=spec|dot|list|min|json|tap|nyan|xunit|progress|landing|markdown|doc
    reporter=spec|dot|list|min|json|tap|nyan|xunit|progress|landing|markdown|doc
    u=bdd|tdd|qunit|exports ui=bdd|tdd|qunit|exports""",
)
_JEST = KnownTool(
    "jest vitest",
    flags="""h b i e f o v version help verbose silent bail runInBand ci coverage no-coverage
    passWithNoTests onlyFailures onlyChanged lastCommit listTests json detectOpenHandles forceExit
    colors no-color no-colors errorOnDeprecated expand no-cache logHeapUsage showConfig
    noStackTrace findRelatedTests run hideSkippedTests""",
    values="""t w testNamePattern testPathPattern testPathPatterns maxWorkers maxConcurrency
    testTimeout bail coverage watchAll=false watch=false shard seed color testPathIgnorePatterns
    retry""",
)
_TSC = KnownTool(
    "tsc vue-tsc",
    flags="""h v version help noEmit pretty strict skipLibCheck listFiles noErrorTruncation
    showConfig noUnused* allowJs checkJs esModuleInterop isolatedModules resolveJsonModule
    diagnostics extendedDiagnostics""",
    values="p project pretty noEmit target module moduleResolution lib jsx strict skipLibCheck",
    single=True,
)
_PRETTIER = KnownTool(
    "prettier",
    flags="""h v c l w u version check list-different write ignore-unknown no-color no-semi
    single-quote use-tabs no-config no-cache no-error-on-unmatched-pattern""",
    values="log-level loglevel print-width tab-width trailing-comma end-of-line arrow-parens",
)
_MAKE = KnownTool(
    "make gmake bmake",
    flags="""k n s B i w q r R d h O v j l keep-going dry-run just-print silent quiet always-make
    ignore-errors print-directory no-print-directory question no-builtin-rules no-builtin-variables
    trace debug version help jobs output-sync warn-undefined-variables""",
    values="j=[0-9]* l=[0-9]* O jobs load-average output-sync debug",
    most=1,
)
_SCRIPT_OPTIONS = KnownTool("")
_NPM = KnownTool(
    "npm",
    flags="""s d q h l v g silent quiet version help json long all if-present no-color loglevel
    global workspaces ws include-workspace-root production no-audit no-fund parseable dry-run""",
    values="w workspace loglevel depth omit include audit-level color",
    commands="""test t tst run run-script rum urn start stop restart ls list la ll outdated audit
    why explain view info show v root prefix bin version fund pack search whoami ping doctor""",
    most=2,
    passes=_SCRIPT_OPTIONS,
)
_PNPM = KnownTool(
    "pnpm yarn",
    flags="s r h v silent version help json long recursive if-present no-color parallel stream w "
    "workspace-root top-level production dev",
    values="filter F loglevel depth reporter=default|silent|append-only|ndjson",
    commands="test t start stop ls list la ll outdated audit why info licenses root bin versions",
    most=1,
    passes=_SCRIPT_OPTIONS,
)
_PNPM_RUN = KnownTool("", flags=_PNPM.flags, values=_PNPM.values, most=2, passes=_SCRIPT_OPTIONS)
_CARGO_PASSES = KnownTool(
    "",
    flags="nocapture no-capture ignored include-ignored exact list show-output quiet q check help",
    values="test-threads skip color format=pretty|terse|json D W A F deny warn allow",
)
_CARGO = KnownTool(
    "cargo",
    flags="""r q v h V release all workspace lib bins tests examples benches all-targets
    all-features no-default-features verbose quiet no-run no-fail-fast locked offline frozen
    keep-going no-deps check doc version list help all future-incompat-report""",
    values="""p package bin test example bench features F j jobs message-format color profile
    exclude edition depth e edges i invert format-version""",
    commands="""build b check c test t clippy fmt doc d bench tree metadata version help
    locate-project pkgid verify-project read-manifest""",
    passes=_CARGO_PASSES,
)
_GO = KnownTool(
    "go",
    flags="""v x n a race msan asan short cover failfast json benchmem m u e deps test find
    compiled trimpath help fullpath versions all src""",
    values="""run bench benchtime count cpu timeout parallel p tags list skip shuffle vet=off|all
    covermode coverpkg f fuzztime v race short cover failfast json mod=vendor|readonly buildvcs""",
    commands="build test vet fmt list version doc help",
    single=True,
)
_GOFMT = KnownTool("gofmt goimports golint staticcheck", flags="d e l s w h", values="checks tags")
_UNIQ = KnownTool(
    "uniq guniq",
    flags="c d D i u z h count repeated unique ignore-case zero-terminated help version",
    values="f s w skip-fields skip-chars check-chars all-repeated group",
    most=1,
)
_SORT = KnownTool(
    "sort gsort",
    flags="""u r n h f b d g i M V s c C z m R unique reverse numeric-sort human-numeric-sort
    ignore-case ignore-leading-blanks dictionary-order general-numeric-sort ignore-nonprinting
    month-sort version-sort stable check merge zero-terminated debug random-sort help version""",
    values="k t S key field-separator buffer-size parallel sort check batch-size",
)
_DATE = KnownTool(
    "date gdate",
    flags="u R I h utc universal rfc-email iso-8601 help version",
    values="d date I iso-8601 rfc-3339",
)
_GREP = KnownTool(
    "grep egrep fgrep zgrep ggrep",
    flags="""i v n c l L h H o w x E F G P s q r R a z Z b T U I y 0 1 2 3 4 5 6 7 8 9 ignore-case
    no-ignore-case invert-match line-number count files-with-matches files-without-match
    no-filename with-filename only-matching word-regexp line-regexp extended-regexp fixed-strings
    basic-regexp perl-regexp no-messages quiet silent recursive dereference-recursive text null
    null-data byte-offset initial-tab color colour help version line-buffered""",
    values="""A B C m e f d D regexp file after-context before-context context max-count include
    exclude exclude-from exclude-dir color colour binary-files directories devices label""",
)
_RG = KnownTool(
    "rg ripgrep",
    flags="""i v n N c l o w x F S s U P u . H h I q a p L 0 ignore-case case-sensitive smart-case
    invert-match line-number no-line-number count count-matches files files-with-matches
    files-without-match only-matching word-regexp line-regexp fixed-strings multiline
    multiline-dotall pcre2 unrestricted hidden no-hidden no-ignore no-ignore-* with-filename
    no-filename quiet text pretty heading no-heading json stats column trim vimgrep passthru
    type-list null no-config no-messages crlf version help follow debug""",
    values="""e g t T A B C m r M j d E f regexp glob iglob type type-not after-context
    before-context context max-count replace max-columns threads max-depth maxdepth encoding engine
    sort sortr color colors max-filesize context-separator file path-separator""",
)
_FIND = KnownTool(
    "find gfind",
    flags="""print print0 not a o and or prune empty ls follow L H P depth d xdev mount quit true
    false noleaf daystart readable writable executable E X x s nouser nogroup""",
    values="""name iname path ipath wholename iwholename type xtype maxdepth mindepth size mtime
    mmin ctime cmin atime amin newer newer?? anewer cnewer perm user group uid gid regex iregex
    regextype links inum samefile lname ilname printf fstype used""",
    single=True,
)
_JQ = KnownTool(
    "jq",
    flags="""r c S M C n e s a j R h raw-output compact-output sort-keys monochrome-output
    color-output null-input exit-status slurp ascii-output join-output raw-input tab help version
    seq stream arg argjson args jsonargs""",
    values="indent",
)
_GIT = KnownTool(
    "git",
    flags="""0 1 2 3 4 5 6 7 8 9 a b c g h i l n o p q r s t u v w z A B C E F G H I M N P R X
    no-pager no-optional-locks no-replace-objects version all short branch long oneline stat
    numstat shortstat dirstat summary graph decorate no-decorate patch no-patch raw cached staged
    name-only name-status check no-color color no-ext-diff no-textconv word-diff function-context
    minimal patience histogram ignore-* no-renames find-renames find-copies full-index binary text
    reverse merge-base merges no-merges first-parent author-date-order date-order
    topo-order all-match no-walk walk-reflogs follow full-history simplify-* show-pulls left-right
    cherry-pick cherry-mark boundary count abbrev abbrev-commit no-abbrev parents children tags
    branches remotes reflog source notes no-notes show-toplevel show-cdup show-prefix show-current
    git-dir git-common-dir absolute-git-dir is-inside-work-tree is-bare-repository verify quiet
    verbose porcelain ignored no-ahead-behind ahead-behind show-stash others modified deleted stage
    unmerged killed directory exclude-standard full-name error-unmatch deduplicate ignore-case
    invert-match extended-regexp basic-regexp fixed-strings perl-regexp word-regexp line-number
    column files-with-matches files-without-match only-matching null heading break show-function
    untracked and or not list merged no-merged contains no-contains dirty always exact-match
    numbered email update intent-to-add dry-run no-edit amend signoff allow-empty
    allow-empty-message ff ff-only no-ff no-commit squash abort continue keep-index
    include-untracked detach create track no-track symref heads get-url line-porcelain root
    incremental show-name show-number unordered buffer ours theirs base exit-code pickaxe-all
    pickaxe-regex abbrev-ref""",
    values="""m e S L U G max-count skip since after until before author committer grep format
    pretty date diff-filter stat unified word-diff word-diff-regex color abbrev decorate
    decorate-refs glob branches tags remotes exclude sort count points-at contains no-contains
    merged no-merged match candidates message file cleanup porcelain untracked-files ignored
    ignore-submodules column submodule inter-hunk-context diff-algorithm relative src-prefix
    dst-prefix line-prefix dirstat show-notes max-depth after-context before-context context
    threads depth conflict symbolic short find-renames find-copies""",
)
_TOOLS = (
    *(_PYTEST, _MYPY, _PYLINT, _RUFF, _BLACK, _ISORT, _FLAKE8, _UNITTEST, _ESLINT, _MOCHA, _JEST),
    *(_TSC, _PRETTIER, _MAKE, _NPM, _PNPM, _CARGO, _GO, _GOFMT, _UNIQ, _SORT, _DATE, _GREP, _RG),
    *(_FIND, _JQ, _GIT),
)


@lru_cache(1)
def _by_program() -> dict[str, KnownTool]:
    return {name: tool for tool in _TOOLS for name in tool.programs.split()}


def is_known(program: str) -> bool:
    """Return whether it is one of the usual tools."""
    return program in _by_program()


def unknown_arguments(program: str, arguments: Words) -> Iterator[Risk]:
    """Yield the arguments of a usual tool that are not known to be harmless."""
    tool = _by_program().get(program)
    if program in ("pnpm", "yarn") and arguments and arguments[0][1] == "run":
        tool = _PNPM_RUN
    if tool is _DATE:
        for at, word in arguments:
            if re.fullmatch(r"\d{8,}(\.\d+)?", word):
                yield Risk(at, f"{program} {word} sets the clock")
    if tool is not None:
        yield from tool.risks(program, arguments)
