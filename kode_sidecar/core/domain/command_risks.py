"""Finds arguments that run another program or write a chosen file. Pure; mostly tables.

A rule that allows `git log` does not foresee `git log --output=x`, and one that denies `rm` does
not foresee `xargs rm`. So such commands need approval whatever the rules say, and the question
says why. The tables err on the side of asking. They do not know the user's own programs: those
are left to the user's rules.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kode_sidecar.core.domain.known_arguments import Risk, Words, is_known, unknown_arguments
from kode_sidecar.core.domain.run_policy import LAUNCHERS


def family(name: str) -> str:
    """Return a program's name in lower case without `.exe` and version, such as `python`."""
    plain = re.sub(r"\.(exe|com)$", "", name.casefold())
    return re.sub(r"(?<=[a-z])[-.]?\d[\d.]*$", "", plain)


@dataclass(frozen=True)
class _Arguments:
    """Risky arguments of some programs; `does` says what they do.

    `options` are long ones, also abbreviated; `letters` short ones, alone or bundled; `words` are
    plain arguments, and with `assigns` so is `NAME=value`.
    """

    programs: str
    does: str
    options: str = ""
    letters: str = ""
    words: str = ""
    assigns: bool = False

    def risks(self, program: str, arguments: Words) -> Iterator[Risk]:
        """Yield a risk for each of these arguments that is in the table."""
        for at, argument in arguments:
            if self._is_meant(argument):
                yield Risk(at, f"{program} {argument} {self.does}")

    def _is_meant(self, argument: str) -> bool:
        if not argument.startswith("-"):
            assigns = self.assigns and re.match(r"\w+\s*[:?+!]?=", argument) is not None
            return assigns or argument.casefold() in self.words.split()
        long = argument.startswith("--")
        if not long and any(letter in argument[1:] for letter in self.letters):
            return True
        name = re.split(r"[=,:]", argument.lstrip("-"), maxsplit=1)[0]
        return name != "" and any(
            option == name or (long and option.startswith(name)) for option in self.options.split()
        )


_RUNS = "runs another program"
_CODE = "runs code that the command brings along"
_WRITES = "writes a file of its own choice"

# Programs that are risky with any arguments.
_PROGRAMS = {
    _RUNS: " ".join(LAUNCHERS)
    + """
    rbash mksh yash elvish nu xonsh ion git-shell toybox coreutils stdbuf chroot unshare nsenter
    setpriv setarch linux taskset chrt ionice flock watch parallel time exec command eval strace
    ltrace perf valgrind rr fakeroot proot bwrap firejail unbuffer expect rlwrap screen tmux dtach
    abduco at batch crontab systemd-run systemctl service launchctl open xdg-open gio dbus-launch
    dbus-run-session dbus-send gdbus busctl start-stop-daemon daemonize run-parts entr watchexec
    direnv mise asdf nix nix-shell docker podman nerdctl kubectl vagrant lxc incus machinectl
    distrobox toolbox flatpak snap wsl wine scp sftp rsync rsh mosh telnet nc ncat netcat socat
    chpst setuidgid gosu su-exec npx bunx uvx pipx corepack tclsh wish osascript gdb lldb dlv jdb
    iex irb pry jshell forfiles conhost control regsvr msiexec schtasks wmic bitsadmin certutil
    installutil msbuild odbcconf explorer ld.so ld-linux.so ld-linux-x86-64.so
    """,
    _CODE: "awk gawk mawk nawk original-awk sed gsed bc dc m ed ex gnuplot",
    "opens a place to type commands in": """
    vi vim vim.basic vim.tiny nvim view vimdiff emacs emacsclient nano pico joe micro helix hx
    less more most man info pager editor sensible-editor sensible-pager select-editor code subl
    sqlite psql mysql mariadb mongosh redis-cli ftp lftp mutt w links elinks lynx
    """,
    "packs files, and runs or reads what its options name": """
    tar bsdtar gtar zip unzip cpio ar shar gzip gunzip pigz bzip bunzip xz unxz lzma unlzma zstd
    unzstd lz lzip compress uncompress brotli 7z 7za rar unrar
    """,
    _WRITES: "dd tee install ln truncate shred mkfifo mknod patch split csplit",
}
_ARGUMENTS = (
    _Arguments("find gfind", _RUNS, options="exec execdir ok okdir"),
    _Arguments("find gfind", _WRITES, options="delete fprint fprint0 fprintf fls"),
    _Arguments("fd fdfind", _RUNS, letters="xX"),
    _Arguments("rg ripgrep", _RUNS, options="pre-glob search-zip", letters="z"),
    _Arguments("ag ack ugrep", _RUNS, options="view", letters="QZz"),
    _Arguments("sort gsort", _WRITES, options="temporary-directory", letters="oT"),
    _Arguments("shuf gshuf sdiff tree", _WRITES, letters="o"),
    _Arguments("diff sdiff", _RUNS, options="diff-program"),
    _Arguments(
        "zcat gzcat bzcat xzcat lzcat zstdcat",
        "reads files that it is not named",
        letters="r",
        options="recursive files files0 filelist",
    ),
    _Arguments(
        "curl wget aria http https",
        _WRITES,
        letters="oOKPDcTdFei",
        options="config remote-name remote-name-all output-dir directory-prefix dump-header "
        "cookie-jar trace trace-ascii use-askpass input-file post-file upload-file data form",
    ),
    _Arguments("ruby jruby", _CODE, options="require", letters="erxSI"),
    _Arguments("perl", _CODE, letters="eEmMdxIni"),
    _Arguments(
        "node nodejs",
        _CODE,
        letters="epr",
        options="print require import loader "
        "experimental-loader env-file run test-reporter test-global-setup",
    ),
    _Arguments(
        "deno bun",
        _RUNS,
        letters="epAr",
        words="eval run x exec repl task install create",
        options="print preload require import-map allow-run allow-all",
    ),
    _Arguments(
        "php",
        _CODE,
        letters="rBREFdzac",
        options="run process-code process-begin process-end define php-ini interactive",
    ),
    _Arguments("lua luajit texlua", _CODE, letters="eli"),
    _Arguments(
        "r rscript julia groovy scala elixir erl ghc runghc runhaskell raku guile sbcl "
        "clojure ocaml swift crystal nim",
        _CODE,
        letters="eErL",
        options="expr load print",
    ),
    _Arguments(
        "java javac javaw kotlin",
        _RUNS,
        options="javaagent agentpath agentlib processor "
        "processorpath processor-path jar class-path classpath cp",
    ),
    _Arguments(
        "make gmake bmake nmake",
        _RUNS,
        letters="fCIE",
        assigns=True,
        options="file makefile directory include-dir environment-overrides",
    ),
    _Arguments(
        "ninja cmake ctest meson",
        _RUNS,
        letters="fCPES",
        words="env",
        options="script build-and-test wrap",
    ),
    _Arguments(
        "just task rake gulp grunt invoke nox tox mage scons waf bazel buck",
        _RUNS,
        letters="fdcr",
        options="justfile taskfile rakefile gulpfile file run_under set",
    ),
    _Arguments(
        "npm pnpm yarn",
        _RUNS,
        letters="cC",
        options="node-options prefix globalconfig userconfig call use-yarnrc cwd",
        words="exec x dlx explore init create install i ci add link rebuild config set edit node",
    ),
    _Arguments("yarn", _RUNS, words="run"),
    _Arguments(
        "pip uv poetry pdm hatch conda mamba pipenv rye",
        _RUNS,
        words="install download wheel run tool exec env build add sync",
    ),
    _Arguments(
        "go",
        _RUNS,
        words="run generate tool install get env",
        options="vettool modfile overlay ldflags gcflags asmflags C",
    ),
    _Arguments(
        "cargo rustc",
        _RUNS,
        letters="CZ",
        words="run r install script fix",
        options="config manifest-path linker codegen",
    ),
    _Arguments(
        "gcc g++ cc c++ cpp clang clang++ ld ld.lld gold as tcc",
        _RUNS,
        letters="B",
        options="wrapper fplugin specs load-pass-plugin plugin use-ld",
    ),
    _Arguments(
        "mvn gradle gradlew sbt ant lein",
        _RUNS,
        letters="IDfbPc",
        options="build-file settings-file project-dir define file listener",
        words="exec:exec exec:java",
    ),
    _Arguments("dotnet", _RUNS, words="run tool script msbuild fsi watch", options="property"),
    _Arguments("gh glab", _RUNS, words="alias extension ext api codespace config browse"),
    _Arguments(
        "hg svn jj bzr fossil",
        _RUNS,
        options="config config-option diff-cmd editor-cmd "
        "diff3-cmd merge-cmd config-dir config-toml config-file extcmd repository tool",
    ),
    _Arguments("openssl", _RUNS, options="engine provider provider-path"),
    _Arguments(
        "terraform tofu pulumi ansible ansible-playbook helm",
        _RUNS,
        letters="eim",
        options="extra-vars inventory post-renderer module-name",
    ),
)
# Option names that many programs share for such things.
_ANYWHERE = _Arguments(
    "",
    "runs another program, or writes a file of its own choice",
    options="exec exec-batch execute eval pager editor shell script-shell rsh to-command filter "
    "use-compress-program compress-program checkpoint-action rmt-command upload-pack receive-pack "
    "toolexec init-script preprocessor hostname-bin ext-diff output output-file output-document "
    "open-files-in-pager pre post-command pre-command command cmd rcfile init-file",
)


_RUNNERS = (
    *("coverage run -m", "uv run", "poetry run", "pdm run", "pipenv run", "hatch run"),
    *("rye run", "bundle exec", "pnpm run", "pnpm exec", "yarn run", "yarn exec", "npm exec"),
)
"""Beginnings of commands behind which another command stands."""


def risks_of(name: str, argv: Sequence[str]) -> Iterator[Risk]:
    """Yield the risks of a command; `name` is the program's, as called or of its file."""
    program, arguments = family(name), tuple(enumerate(argv))[1:]
    yield from _plain_risks(program, arguments)
    for runner in map(str.split, _RUNNERS):
        size = len(runner)
        if [program, *argv[1:size]] == runner and argv[size:]:
            yield from _behind(arguments[size - 1 :])


def _behind(words: Words) -> Iterator[Risk]:
    """Yield the risks of a command that stands in another one."""
    inner = risks_of(words[0][1], [word for _, word in words])
    yield from (Risk(words[0][0] + risk.at, risk.why) for risk in inner)


def _plain_risks(program: str, arguments: Words) -> Iterator[Risk]:
    for does, programs in _PROGRAMS.items():
        if program in programs.split():
            yield Risk(0, f"{program} {does}")
    if program in ("python", "pythonw", "pypy", "py"):
        yield from _python(program, arguments)
    elif program == "git":
        yield from _git(arguments)
    for table in _ARGUMENTS:
        if program in table.programs.split():
            yield from table.risks(program, arguments)
    if not is_known(program):
        yield from _ANYWHERE.risks(program, arguments)
    for at, argument in arguments:
        if argument.startswith("@") and len(argument) > 1:
            yield Risk(at, f"{program} may read more arguments from the file {argument[1:]}")
    yield from unknown_arguments(program, arguments)


_PYTHON_FLAGS = re.compile(r"-[BEIOPRSbdhqsuvV]+")
_PYTHON_OPTIONS = _Arguments("", _CODE, letters="cmWXxi")
_PYTHON_MODULES = _Arguments(
    "",
    _RUNS,
    words="timeit pdb cprofile profile trace runpy code idlelib idlelib.idle pip ensurepip "
    "http.server ipython ptpython bdb doctest zipapp webbrowser venv virtualenv pipx asyncio "
    "inspect pydoc sqlite3 modulefinder turtledemo xmlrpc.server wsgiref.simple_server",
)
_PYTHON_WRITERS = _Arguments(
    "", _WRITES, words="tarfile zipfile gzip json.tool lib2to3 compileall py_compile mailcap uu"
)


def _python(program: str, arguments: Words) -> Iterator[Risk]:
    """Yield the risks of Python's own arguments, which end at a script or a module."""
    rest = list(arguments)
    while rest and _PYTHON_FLAGS.fullmatch(rest[0][1]):
        rest.pop(0)
    if rest and rest[0][1] == "-m":
        for modules in (_PYTHON_MODULES, _PYTHON_WRITERS):
            yield from modules.risks(f"{program} -m", rest[1:2])
        if rest[1:]:
            yield from _behind(rest[1:])
    elif rest and rest[0][1].startswith("-"):
        yield from _PYTHON_OPTIONS.risks(program, rest)


_GIT_HARMLESS = ("--no-pager", "--no-optional-locks", "--no-replace-objects", "--version")
_GIT_COMMANDS = """
    add annotate archive bisect blame branch bundle cat-file check-attr check-ignore
    check-mailmap checkout cherry cherry-pick clean clone commit commit-tree count-objects describe
    diff diff-files diff-index diff-tree fetch for-each-ref format-patch fsck gc grep hash-object
    init log ls-files ls-remote ls-tree merge merge-base merge-file merge-tree mv name-rev notes
    prune pull push range-diff read-tree rebase reflog remote reset restore rev-list rev-parse
    revert rm shortlog show show-branch show-ref sparse-checkout stash status submodule switch
    symbolic-ref tag update-index update-ref var verify-commit version whatchanged worktree
    write-tree
"""
_GIT_ANY = (
    _Arguments("", _WRITES, options="output-directory contents separate-git-dir prefix"),
    _Arguments(
        "",
        _RUNS,
        options="textconv filters extcmd tool template config help interactive "
        "edit edit-description gpg-sign sign unsafe-paths show-signature paginate remote "
        "strategy recurse-submodules",
    ),
)
_GIT_OWN = (
    _Arguments("grep", _RUNS, letters="O"),
    _Arguments("rebase", _RUNS, letters="xisS"),
    _Arguments("format-patch archive", _WRITES, letters="o"),
    _Arguments("clone", _RUNS, letters="cu"),
    _Arguments("commit merge pull cherry-pick revert", _RUNS, letters="eS"),
    _Arguments("tag", _RUNS, letters="esu"),
    _Arguments("add clean", _RUNS, letters="ei"),
    _Arguments("bisect", _RUNS, words="run visualize view"),
    _Arguments("submodule", _RUNS, words="foreach update add init sync"),
    _Arguments("remote", _RUNS, words="add set-url update"),
    _Arguments("notes", _RUNS, words="edit"),
    _Arguments("bundle", _WRITES, words="create"),
)


def _git(arguments: Words) -> Iterator[Risk]:
    rest = list(arguments)
    while rest and rest[0][1].startswith("-"):
        at, option = rest.pop(0)
        if option not in _GIT_HARMLESS:
            yield Risk(at, f"git {option} in front of git's command decides what else it runs")
    if not rest:
        return
    at, command = rest.pop(0)
    if command not in _GIT_COMMANDS.split():
        yield Risk(
            at, f"git {command} is none of git's plain commands: it may run or write anything"
        )
    own = (table for table in _GIT_OWN if command in table.programs.split())
    for table in (*_GIT_ANY, *own):
        yield from table.risks(f"git {command}", rest)
    for at, argument in rest:
        if "::" in argument:
            yield Risk(at, f"git {command} {argument} names a program to talk to")


def first_of(risks: Iterable[Risk], spelled_out: int) -> str:
    """Return why a command needs approval; empty if it does not.

    A rule has the first `spelled_out` words, so the user meant them: `uv run pytest`. The last of
    them still counts, because more may follow, and so does a program that runs any other.
    """
    return next((one.why for one in risks if one.at == 0 or one.at >= spelled_out - 1), "")
