"""Rules about commands, and a hundred ways round them that all end with a question or a no. F9"""

from pathlib import Path

import pytest

from kode_sidecar.agent.permissions.command_files import leads_out
from kode_sidecar.core.domain.command_rules import CommandRules, shown_command
from tests.support.files import link

ALLOWED = (
    "git status",
    "git log",
    "git diff",
    "git grep",
    "git",
    "python -m pytest",
    "python",
    "find",
    "rg",
    "sort",
    "node",
    "perl",
    "ruby",
    "make test",
    "npm",
    "npm test",
    "cargo test",
    "cargo",
    "go test",
    "go",
    "gcc",
    "cat",
    "ls",
    "uv run pytest",
    "env",
    "xargs",
    "sh",
    "tar",
    "curl",
    "pip",
    "fd",
)
DENIED = ("rm", "git push", "npm publish", "cargo publish", "vim", "git commit --amend")
RULES = CommandRules("ask", [rule.split() for rule in ALLOWED], [rule.split() for rule in DENIED])

DODGES: tuple[tuple[str, str], ...] = (
    # a program that runs any other one, although a rule names it
    ("env rm -rf .", "runs another program"),
    ("env -S rm", "runs another program"),
    ("env -i PATH=/x ls", "runs another program"),
    ("xargs rm", "runs another program"),
    ("xargs -I{} git push {}", "runs another program"),
    ("sh -c rm", "runs another program"),
    ("sh ./x.sh", "runs another program"),
    ("bash -c rm", "runs another program"),
    ("BASH -c rm", "runs another program"),
    ("bash.exe -c rm", "runs another program"),
    ("busybox rm x", "runs another program"),
    ("nohup rm x", "runs another program"),
    ("timeout 9 rm x", "runs another program"),
    ("nice rm x", "runs another program"),
    ("setsid rm x", "runs another program"),
    ("sudo rm x", "runs another program"),
    ("stdbuf -o0 rm x", "runs another program"),
    ("watch rm x", "runs another program"),
    ("parallel rm ::: x", "runs another program"),
    ("strace rm x", "runs another program"),
    ("script -c rm", "runs another program"),
    ("flock x rm x", "runs another program"),
    ("ssh localhost rm x", "runs another program"),
    ("docker run -v .:/x alpine rm x", "runs another program"),
    ("systemd-run --user rm x", "runs another program"),
    ("at now", "runs another program"),
    ("tmux new -d rm", "runs another program"),
    ("npx rimraf x", "runs another program"),
    ("powershell -Command x", "runs another program"),
    ("cmd.exe /c del x", "runs another program"),
    ("ld-linux-x86-64.so.2 x", "runs another program"),
    ("gdb-14 -ex x", "runs another program"),
    ("awk BEGIN{system(1)}", "runs code"),
    ("sed 1e x", "runs code"),
    ("vi -c !rm", "type commands in"),
    ("less x", "type commands in"),
    ("man ls", "type commands in"),
    ("tar cf x.tar --checkpoint-action=exec=rm .", "packs files"),
    ("tar cIf rm x.tar .", "packs files"),
    ("gunzip -rcf x", "packs files"),
    ("xz --files=names -c", "packs files"),
    ("zcat -rf x", "reads files that it is not named"),
    ("xzcat --files=names", "reads files that it is not named"),
    ("tee x", "writes a file"),
    ("split -b 4 x .git/y", "writes a file"),
    ("shuf a -o x", "writes a file"),
    ("sdiff -o x a a", "writes a file"),
    ("diff3 --diff-program=./x a a a", "runs another program"),
    # Git, which has many doors
    ("git -c alias.x=!rm x", "in front of"),
    ("git -calias.x=!rm x", "in front of"),
    ("git -c core.fsmonitor=./x status", "in front of"),
    ("git --config-env=core.pager=X log", "in front of"),
    ("git --exec-path=x status", "in front of"),
    ("git -C sub status", "in front of"),
    ("git --git-dir=sub/x status", "in front of"),
    ("git --work-tree=x status", "in front of"),
    ("git -p log", "in front of"),
    ("git --paginate log", "in front of"),
    ("git x", "none of git's plain commands"),
    ("git config alias.x !rm", "none of git's plain commands"),
    ("git filter-branch --tree-filter rm", "none of git's plain commands"),
    ("git difftool -x rm", "none of git's plain commands"),
    ("git mergetool", "none of git's plain commands"),
    ("git for-each-repo --config=x rm", "none of git's plain commands"),
    ("git help log", "none of git's plain commands"),
    ("git instaweb", "none of git's plain commands"),
    ("git hook run x", "none of git's plain commands"),
    ("git apply x.patch", "none of git's plain commands"),
    ("git am x.patch", "none of git's plain commands"),
    ("git log --output=x", "--output=x"),
    ("git log --output x", "--output"),
    ("git log --outp=x", "--outp=x"),
    ("git diff --o=x", "--o=x"),
    ("git diff --ext-diff", "--ext-diff"),
    ("git log -p --textconv", "--textconv"),
    ("git log --help", "--help"),
    ("git grep -O x", "-O"),
    ("git grep -Orm x", "-Orm"),
    ("git grep -nOrm x", "-nOrm"),
    ("git grep --open-files-in-pager=rm x", "--open-files-in-pager"),
    ("git grep --open=rm x", "--open=rm"),
    ("git rebase -x rm HEAD~1", "-x"),
    ("git rebase --exec rm HEAD~1", "--exec"),
    ("git rebase -i HEAD~1", "-i"),
    ("git bisect run rm", "run"),
    ("git submodule foreach rm", "foreach"),
    ("git fetch --upload-pack=rm .", "--upload-pack"),
    ("git clone -u rm . x", "-u"),
    ("git clone --config core.fsmonitor=x . y", "--config"),
    ("git clone ext::rm x", "names a program"),
    ("git fetch ext::rm", "names a program"),
    ("git ls-remote ext::rm", "names a program"),
    ("git archive --remote=x --exec=rm HEAD", "--remote"),
    ("git archive -o x.tar HEAD", "-o"),
    ("git format-patch -o x HEAD~1", "-o"),
    ("git commit --edit", "--edit"),
    ("git init --template=x", "--template"),
    # interpreters, and options that carry code or a program
    ("python -c print()", "runs code"),
    ("python -cprint()", "runs code"),
    ("python -Bc print()", "runs code"),
    ("python -B -c print()", "runs code"),
    ("python -X -m -c print()", "runs code"),
    ("python -X dev -c print()", "runs code"),
    ("python -W ignore -c print()", "runs code"),
    ("python3.11 -c print()", "runs code"),
    ("Python.exe -c print()", "runs code"),
    ("python -m timeit print()", "runs another program"),
    ("python -m pdb -c x a.py", "runs another program"),
    ("python -m pip install x", "runs another program"),
    ("python -B -m runpy x", "runs another program"),
    ("node -e 1", "runs code"),
    ("node -pe 1", "runs code"),
    ("node --eval=1", "writes a file|runs"),
    ("node --import=x a.js", "runs code"),
    ("node -r x a.js", "runs code"),
    ("perl -e 1", "runs code"),
    ("perl -ne 1", "runs code"),
    ("perl -Mx a.pl", "runs code"),
    ("ruby -e 1", "runs code"),
    ("ruby -rx a.rb", "runs code"),
    ("find . -exec rm {} ;", "-exec"),
    ("find . -execdir rm {} ;", "-execdir"),
    ("find . -ok rm {} ;", "-ok"),
    ("find . -delete", "-delete"),
    ("find . -fprintf x y", "-fprintf"),
    ("fd -x rm", "-x"),
    ("fd -Hx rm", "-Hx"),
    ("fd --exec-b rm", "--exec-b"),
    ("rg --pre rm x", "--pre"),
    ("rg --pre=rm x", "--pre=rm"),
    ("rg --hostname-bin=rm x", "--hostname-bin"),
    ("sort -o x y", "-o"),
    ("sort -ox y", "-ox"),
    ("sort --compress-program=rm x", "--compress-program"),
    ("make test SHELL=x", "SHELL=x"),
    ("make test CC:=x", "CC:=x"),
    ("make test -f x", "-f"),
    ("make test --eval=x", "--eval"),
    ("make test -C sub", "-C"),
    ("npm exec x", "exec"),
    ("npm --prefix sub test", "--prefix"),
    ("npm test --script-shell=x", "--script-shell"),
    ("npm i x", "i"),
    ("pip install x", "install"),
    ("cargo --config x test", "--config"),
    ("cargo run", "run"),
    ("go test -exec rm ./...", "-exec"),
    ("go test --exec=rm ./...", "--exec=rm"),
    ("go test -toolexec=rm ./...", "-toolexec"),
    ("go run x", "run"),
    ("gcc -wrapper rm x.c", "-wrapper"),
    ("gcc -fplugin=x.so x.c", "-fplugin"),
    ("gcc @x", "from the file x"),
    ("curl -o x y", "-o"),
    ("curl -sSo x y", "-sSo"),
    ("curl --config x", "--config"),
    ("uv run pytest --pager=x", "--pager"),
    # denied, however it is spelled
    ("rm x", "deny"),
    ("RM x", "deny"),
    ("rm.exe x", "deny"),
    ("git push", "deny"),
    ("git --no-pager push", "deny"),
    ("git push --force", "deny"),
    ("GIT push", "deny"),
    ("npm publish", "deny"),
    ("npm --silent publish", "deny"),
    ("npm --tag x publish", "deny"),
    ("npm publ", "deny"),
    ("cargo -q publish", "deny"),
    ("git commit -m x --amend", "deny"),
    ("git commit --am", "deny"),
    ("git commit --amend=x", "deny"),
    ("vim9 x", "deny"),
)


@pytest.mark.parametrize(("command", "why"), DODGES, ids=[command for command, _ in DODGES])
def test_no_way_round_the_rules(command: str, why: str) -> None:
    for rules in (RULES, CommandRules("list", RULES.allow, RULES.deny)):
        verdict = rules.verdict(command.split())
        assert verdict.effect != "allow"
        if rules.mode == "ask":
            assert any(part in verdict.reason for part in why.split("|")), verdict.reason
            assert verdict.effect == ("deny" if why == "deny" else "ask")
            assert verdict.risky == (why != "deny")


def test_there_are_a_hundred_of_them() -> None:
    assert len({command for command, _ in DODGES}) >= 100


@pytest.mark.parametrize(
    "command",
    [
        "git status --short",
        "git log --oneline -n 5 --stat -- a.py",
        "git diff --cached --name-only HEAD~2..HEAD",
        "git --no-pager log --graph --format=%H --since=2026-01-01 --grep=x",
        "git grep -n -i needle -- src",
        "git show HEAD:a.py",
        "git add -A",
        "git commit -am fix",
        "python -m pytest -x -c pytest.ini -k a_and_b -p no:cacheprovider",
        "python -B -u -m pytest --tb=short -vv tests/test_a.py::test_b",
        "python scripts/check.py -c --exit",
        "find . -name *.py -newer x -print",
        "rg -n --glob=*.py needle src",
        "sort -u x",
        "make test",
        "make test -j4",
        "npm test",
        "npm run lint",
        "cargo test --release -- --nocapture",
        "go test ./... -run TestA -v",
        "gcc -Wall -c a.c -o a.o",
        "cat a.py",
        "uv run pytest -q",
        "fd -e py",
    ],
)
def test_plain_uses_are_not_asked_for(command: str) -> None:
    verdict = RULES.verdict(command.split())
    assert verdict.effect == "allow", verdict.reason


def test_a_program_goes_by_the_name_of_its_file_too() -> None:
    rules = CommandRules("ask", [["pager"], ["nawk"], ["editor"]], [["nano"]])
    assert rules.verdict(["pager", "x"], "less").risky
    assert rules.verdict(["nawk", "x"], "mawk").risky
    assert rules.verdict(["editor", "x"], "nano").effect == "deny"


def test_modes() -> None:
    for mode, unlisted in (("off", "deny"), ("list", "deny"), ("ask", "ask")):
        rules = CommandRules(mode, [["ls"], ["python", "-m", "pytest"]])  # type: ignore[arg-type]
        assert rules.verdict(["cat", "x"]).effect == unlisted
        assert rules.verdict(["ls", "-l"]).effect == ("deny" if mode == "off" else "allow")
        assert rules.verdict(["ls.exe"]).effect == ("deny" if mode == "off" else "allow")
        assert rules.verdict(["LS"]).effect == unlisted
        # First words are words, and all of them count.
        assert rules.verdict(["python", "-m", "pytest2"]).effect == unlisted
        assert rules.verdict(["python", "-m pytest"]).effect in (unlisted, "ask")
        assert rules.verdict(["python", "x", "-m", "pytest"]).effect == unlisted


def test_what_a_rule_spells_out_is_the_users_own_word() -> None:
    rules = CommandRules("list", [["uv", "run", "pytest"], ["npm", "run"], ["pip", "install"]])
    assert rules.verdict(["uv", "run", "pytest", "-x"]).effect == "allow"
    assert rules.verdict(["uv", "run", "rm"]).effect == "deny"
    assert rules.verdict(["pip", "install", "x"]).effect == "ask"


@pytest.mark.parametrize(
    "argument",
    [
        *("/etc/passwd", "../x", "sub/../../x", "~/x", "~root/x", "-C/etc", "-I../x", "-xf../x"),
        *("--output=/tmp/x", "--git-dir=../x", "-o=../x", "a:../x", "@../x", "file:///etc/passwd"),
        *(
            "--a=b=/etc",
            "x,/etc/passwd",
            "https://example.com/x",
            "//host/share",
            "\\\\host\\share",
        ),
        *("C:\\Windows", "link", "link/x", "--prefix=link", "..", "sub\\..\\..\\x", ' "/etc"'),
    ],
)
def test_arguments_that_lead_out_of_the_folders_are_asked_for(
    tmp_path: Path, argument: str
) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    link(root / "link", tmp_path)
    assert leads_out(["x", argument], root, [root]) == argument
    rules = CommandRules("ask", [["cat"]])
    assert rules.verdict(["cat", argument], elsewhere=argument).risky
    assert rules.verdict(["cat", "x"]).effect == "allow"


def test_arguments_that_stay_inside(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root / "sub", other):
        folder.mkdir(parents=True)
    inside = [
        "a.py",
        "sub/a.py",
        "./x",
        "../root/x",
        str(root / "x"),
        str(other / "x"),
        "--x=sub/y",
    ]
    inside += ["HEAD~2..HEAD", "a...b", "--format=%H/%s", "-k", "a and (b or c)", "/dev/null", ""]
    inside += ["x" * 30_000, "=" * 30_000, "2026/01/02", "src/**/*.py"]
    assert leads_out(inside, root, [root, other]) == ""


def test_no_two_commands_look_the_same() -> None:
    commands = [
        ["git", "status"],
        ["git status"],
        ["git", "'status'"],
        ["git", "sta tus"],
        ["git", "sta", "tus"],
        ["git", ""],
        ["git"],
        ["git", "a\nb"],
        ["git", "a\\nb"],
        ["git", "$'a\\nb'"],
        ["git", "a\u202eb"],
        ["git", "a\\u202eb"],
        ["git", "a\ud800b"],
        ["git", "a'b"],
        ["git", 'a"b'],
        ["git", "*"],
    ]
    shown = [shown_command(command) for command in commands]
    assert len(set(shown)) == len(commands)
    assert all(text.isprintable() for text in shown)
