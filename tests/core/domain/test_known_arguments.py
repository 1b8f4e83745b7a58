"""The usual tools run with the arguments that are known to be harmless, and ask for all others."""

import pytest

from kode_sidecar.core.domain.command_rules import CommandRules

TOOLS = """make pytest pylint mypy ruff eslint mocha jest npm pnpm yarn cargo go git uniq sort date
grep find rg tsc black jq python uv"""
RULES = CommandRules("ask", [[tool] for tool in TOOLS.split()])

ASKED = (
    *(
        "make SHELL=./x",
        "make -f x",
        "make -C sub",
        "make -I x",
        "make -E x=y",
        "make a b",
        "make -o",
    ),
    *("pytest -p evil", "pytest -pevil", "pytest -c sub/x.ini", "pytest -o addopts=-pevil"),
    *("pytest --basetemp=keep", "pytest --basetemp keep", "pytest --rootdir=sub", "pytest -xpevil"),
    *(
        "pytest --override-ini=x=y",
        "pytest --confcutdir=x",
        "pytest --junitxml=x",
        "pytest --pyargs x",
    ),
    *(
        "pytest --cov-report=html:x",
        "pytest --log-file=x",
        "pytest --pdbcls=a:b",
        "pytest -k x -p e",
    ),
    *("pytest -W error::evil.X", "pytest --debug=x", "pytest --report-log=x", "pytest -vc x"),
    *("python -m pytest -p evil", "python -m pytest --basetemp=x", "python -B -m pytest -o x=y"),
    *("python -m mypy --config-file x", "python -m pylint --init-hook=x", "python -m tarfile -e x"),
    *("uv run pytest -p evil", "yarn run lint", "pnpm exec eslint -c x", "python -m json.tool a b"),
    *(
        "pylint --init-hook=x",
        "pylint --rcfile=x",
        "pylint --load-plugins=x",
        "pylint -f evil.Reporter",
    ),
    *("pylint --output-format=evil.R", "pylint --generate-rcfile", "pylint --output=x"),
    *(
        "mypy --config-file=x",
        "mypy --python-executable=x",
        "mypy --install-types",
        "mypy --cache-dir x",
    ),
    *(
        "mypy --html-report x",
        "mypy --custom-typeshed-dir x",
        "mypy --plugin x",
        "mypy --shadow-file a b",
    ),
    *("ruff check --config x", "ruff check --output-file x", "ruff clean", "ruff server", "ruff x"),
    *("ruff --cache-dir x check", "eslint --rulesdir x", "eslint -c x", "eslint --plugin x"),
    *(
        "eslint --parser x",
        "eslint -f ./evil.js",
        "eslint -o x",
        "eslint --resolve-plugins-relative-to x",
    ),
    *("eslint --cache-location x", "mocha -r x", "mocha --require x", "mocha --config x"),
    *(
        "mocha --reporter ./x",
        "mocha --import=x",
        "mocha --loader=x",
        "mocha -R x",
        "mocha --file x",
    ),
    *("mocha --node-option=x", "mocha --reporter-option output=x", "mocha -n require=x"),
    *(
        "jest --config x",
        "jest --globalSetup x",
        "jest --rootDir x",
        "jest --reporters x",
        "jest -c x",
    ),
    *(
        "jest --runner x",
        "jest --outputFile x",
        "jest --coverageDirectory x",
        "jest --setupFiles x",
    ),
    *("npm --prefix x test", "npm -C x test", "npm exec x", "npm test -- --require x", "npm x"),
    *(
        "npm run a b",
        "npm --script-shell=x test",
        "npm --userconfig=x test",
        "npm --node-options=x t",
    ),
    *(
        "pnpm --dir x test",
        "pnpm x",
        "pnpm -C x test",
        "yarn x",
        "yarn --cwd x test",
        "yarn node x",
    ),
    *("cargo --config x test", "cargo test --manifest-path x", "cargo +nightly test", "cargo x"),
    *("cargo test --target-dir x", "cargo clippy -- -C linker=x", "cargo build -Z x", "cargo fix"),
    *(
        "cargo build --target x.json",
        "cargo fmt -- --config-path x",
        "cargo run",
        "cargo build --out-dir x",
    ),
    *(
        "go test -exec x",
        "go build -o x",
        "go test -c",
        "go test -coverprofile x",
        "go -C sub test",
    ),
    *("go test -args -test.cpuprofile=x", "go vet -vettool x", "go build -toolexec=x", "go x"),
    *("go test -outputdir x", "go build -mod=mod", "go build -pkgdir x", "go build -compiler x"),
    *("uniq a b", "uniq -c a b", "uniq -- a b", "uniq a .git/hooks/x", "sort -o x", "sort -uo x"),
    *("sort --files0-from=x", "sort -T x", "sort --random-source=x", "sort --output x"),
    *("date -f x", "date -s x", "date 010203042026", "date --file=x", "date -r x", "date --set x"),
    *(
        "grep --unknown x",
        "find . -fprint x",
        "find -files0-from x",
        "find . -okdir x",
        "rg --pre x",
    ),
    *(
        "rg --ignore-file=x y",
        "rg --hostname-bin x",
        "tsc --outDir x",
        "tsc --plugins x",
        "black -c x",
    ),
    *("black --config x", "jq -f x", "jq -L x .", "jq --rawfile a b .", "jq --from-file x"),
    *("git diff --no-index a b", "git log --output=x", "git clean -fdx", "git checkout -f"),
    *("git reset --hard", "git commit --no-verify", "git branch -D x", "git diff --orderfile=x"),
    *(
        "git diff -Ox",
        "git show --ext-diff",
        "git log --remerge-x",
        "git commit -t x -e",
        "git rm -f x",
    ),
)
PLAIN = (
    *("make", "make test", "make -j4 test", "make -j 4 -k test", "make --no-print-directory test"),
    *(
        "pytest",
        "pytest -q",
        "pytest -xvs tests/a.py::b",
        "pytest -k 'a' -m b",
        "pytest --lf --tb=short",
    ),
    *(
        "pytest -n auto",
        "pytest -p no:cacheprovider",
        "pytest --maxfail 1",
        "pytest -ra --durations=5",
    ),
    *("pytest --cov=src --cov-report=term", "pytest -c pytest.ini", "pytest --ignore=sub tests"),
    *(
        "python -m pytest -q",
        "python -m mypy --strict a.py",
        "python -m unittest -v",
    ),
    *("pylint a.py --disable=C0114 -j 4", "pylint -f json a.py", "pylint --max-line-length=100 a"),
    *("mypy .", "mypy --strict --show-error-codes src", "mypy --python-version 3.11 a.py"),
    *(
        "ruff check .",
        "ruff check --fix --select E,F src",
        "ruff format --check .",
        "ruff --version",
    ),
    *(
        "eslint src --ext .ts --fix",
        "eslint --max-warnings 0 -f json src",
        "mocha -g x --timeout 5000",
    ),
    *(
        "mocha --reporter dot test/a.js",
        "jest -t x",
        "jest --coverage --ci src/a.test.js",
        "jest -i",
    ),
    *(
        "npm test",
        "npm run lint",
        "npm run build --silent",
        "npm ls --depth=0",
        "npm t -s",
        "pnpm test",
    ),
    *("pnpm run lint", "yarn test", "pnpm -r test", "npm test -- src/a.test.js"),
    *(
        "cargo test",
        "cargo test --release a_test -- --nocapture --test-threads=1",
        "cargo build -p x",
    ),
    *(
        "cargo clippy --all-targets -- -D warnings",
        "cargo fmt --check",
        "cargo check --features a,b",
    ),
    *(
        "go test ./... -run TestA -v -count=1",
        "go build ./...",
        "go vet ./...",
        "go test -race -short .",
    ),
    *(
        "uniq -c a",
        "uniq",
        "sort -u -k2,2 a",
        "sort -t , -k 2n a b",
        "sort -rn",
        "date",
        "date -u +%F",
    ),
    *(
        "date -d yesterday",
        "grep -rn x src",
        "grep -A3 -i --include=*.py x .",
        "find . -name *.py -type f",
    ),
    *(
        "find . -mtime -1 -not -path ./x",
        "find src ( -name a -o -name b ) -print",
        "rg -n x -g *.py",
    ),
    *("rg --files", "tsc --noEmit -p tsconfig.json", "black --check -l 100 .", "jq -r .a x.json"),
    *("git status -sb", "git log --oneline -5", "git diff HEAD~1 -- a.py", "git show --stat HEAD"),
    *("git log -p -2 --follow a.py", "git blame -w -L 1,5 a.py", "git branch -a --sort=date"),
    *(
        "git stash list",
        "git rev-parse --abbrev-ref HEAD",
        "git ls-files --others --exclude-standard",
    ),
    *("git commit -m x", "git checkout -b x", "git grep -n -e x", "git diff --stat --cached -M"),
)


@pytest.mark.parametrize("command", ASKED)
def test_what_is_not_known_to_be_harmless_is_asked_for(command: str) -> None:
    verdict = RULES.verdict(command.split())
    assert verdict.effect == "ask"
    assert verdict.risky
    assert "so it is always asked for" in verdict.reason


@pytest.mark.parametrize("command", PLAIN)
def test_what_is_known_to_be_harmless_runs(command: str) -> None:
    verdict = RULES.verdict(command.split())
    assert verdict.effect == "allow", verdict.reason


def test_what_the_user_spells_out_is_the_users_word() -> None:
    rules = CommandRules("list", [["pytest", "-p", "xdist"], ["yarn", "run", "lint"]])
    assert rules.verdict(["pytest", "-p", "xdist", "-q"]).effect == "allow"
    assert rules.verdict(["pytest", "-p", "xdist", "-p", "evil"]).risky
    assert rules.verdict(["yarn", "run", "lint"]).effect == "allow"
