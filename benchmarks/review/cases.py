# ruff: noqa: E501
"""The diffs: each is a file before and after, with the line that is wrong, or none."""

from typing import NamedTuple


class Case(NamedTuple):
    """A change of one file. `fault` is the wrong line; empty if the change is right.

    `old` and `new` are what changes in `rest`, at `@`. `caller` is another file that breaks.
    """

    kind: str
    file: str
    rest: str
    old: str
    new: str
    fault: str = ""
    caller: str = ""

    def text(self, *, changed: bool) -> str:
        """The file before or after the change."""
        return self.rest.replace("@", self.new if changed else self.old)


_PY = "def run(items, other=None):\n    total = 0\n    @\n    return total\n"
_ASYNC = "async def run(store, key):\n    found = None\n    @\n    return found\n"
_JS = "export async function run(items, store) {\n  let total = 0;\n  @\n  return total;\n}\n"
_GO = "package shop\n\nfunc Run(items []int) int {\n\ttotal := 0\n\t@\n\treturn total\n}\n"
_C = "#include <string.h>\nint run(char *out, const char *in, int n) {\n    int i;\n    @\n    return i;\n}\n"
_TEST = "from shop import price\n\n\ndef test_price():\n    @\n"
_LIB = "def price(tea, @):\n    return TABLE[tea]\n\n\nTABLE = {'tea': 3}\n"

FAULTS = (
    Case("off-by-one", "a.py", _PY, "total = sum(items)", "total = sum(items[1:])", "total = sum(items[1:])"),
    Case("off-by-one", "b.js", _JS, "for (const x of items) total += x;", "for (let i = 0; i <= items.length; i++) total += items[i];", "for (let i = 0; i <= items.length; i++) total += items[i];"),
    Case("off-by-one", "c.go", _GO, "for _, x := range items { total += x }", "for i := 1; i < len(items); i++ { total += items[i] }", "for i := 1; i < len(items); i++ { total += items[i] }"),
    Case("off-by-one", "d.c", _C, "for (i = 0; i < n; i++) out[i] = in[i];", "for (i = 0; i <= n; i++) out[i] = in[i];", "for (i = 0; i <= n; i++) out[i] = in[i];"),
    Case("missing-await", "a.py", _ASYNC, "found = await store.get(key)", "found = store.get(key)", "found = store.get(key)"),
    Case("missing-await", "b.js", _JS, "total = await store.count();", "total = store.count();", "total = store.count();"),
    Case("missing-await", "c.py", _ASYNC, "await store.put(key, found)", "store.put(key, found)", "store.put(key, found)"),
    Case("swallowed-error", "a.py", _PY, "total = other()", "try:\n        total = other()\n    except Exception:\n        pass", "except Exception:"),
    Case("swallowed-error", "b.js", _JS, "await store.save(items);", "await store.save(items).catch(() => {});", "await store.save(items).catch(() => {});"),
    Case("swallowed-error", "c.go", _GO, "if err := save(items); err != nil { panic(err) }", "_ = save(items)", "_ = save(items)"),
    Case("wrong-encoding", "a.py", _PY, "total = len(open(other, encoding='utf-8').read())", "total = len(open(other).read())", "total = len(open(other).read())"),
    Case("wrong-encoding", "b.js", _JS, "total = Buffer.byteLength(items, 'utf8');", "total = items.length; // bytes", "total = items.length; // bytes"),
    Case("wrong-encoding", "c.py", _PY, "total = other.encode('utf-8')", "total = other.encode('ascii', 'ignore')", "total = other.encode('ascii', 'ignore')"),
    Case("race", "a.py", _PY, "with LOCK:\n        COUNT[other] += 1", "COUNT[other] += 1", "COUNT[other] += 1"),
    Case("race", "b.js", _JS, "total = await store.increment();", "total = (await store.get()) + 1; await store.set(total);", "total = (await store.get()) + 1; await store.set(total);"),
    Case("race", "c.py", _PY, "os.makedirs(other, exist_ok=True)", "if not os.path.exists(other): os.makedirs(other)", "if not os.path.exists(other): os.makedirs(other)"),
    Case("injection", "a.py", _PY, "total = db.execute('select ?', [other])", "total = db.execute(f'select {other}')", "total = db.execute(f'select {other}')"),
    Case("injection", "b.js", _JS, "node.textContent = items;", "node.innerHTML = items;", "node.innerHTML = items;"),
    Case("injection", "c.py", _PY, "subprocess.run(['ls', other])", "subprocess.run(f'ls {other}', shell=True)", "subprocess.run(f'ls {other}', shell=True)"),
    Case("injection", "d.py", _PY, "total = yaml.safe_load(other)", "total = yaml.load(other, yaml.Loader)", "total = yaml.load(other, yaml.Loader)"),
    Case("leaked-resource", "a.py", _PY, "with open(other) as file:\n        total = file.read()", "total = open(other).read()", "total = open(other).read()"),
    Case("leaked-resource", "b.go", _GO, "f, _ := os.Open(name); defer f.Close()", "f, _ := os.Open(name); _ = f", "f, _ := os.Open(name); _ = f"),
    Case("leaked-resource", "c.js", _JS, "const timer = setTimeout(stop, 9); clearTimeout(timer);", "setInterval(stop, 9);", "setInterval(stop, 9);"),
    Case("broken-caller", "a.py", _LIB, "size=1", "size", "def price(tea, size):", "from a import price\n\nprint(price('tea'))\n"),
    Case("broken-caller", "b.py", _LIB, "size", "*, size", "def price(tea, *, size):", "from b import price\n\nprint(price('tea', 2))\n"),
    Case("broken-caller", "c.py", _LIB, "size=1, hot=True", "size=1", "def price(tea, size=1):", "from c import price\n\nprint(price('tea', hot=False))\n"),
    Case("empty-test", "test_a.py", _TEST, "assert price('tea') == 3", "price('tea')", "price('tea')"),
    Case("empty-test", "test_b.py", _TEST, "assert price('tea') == 3", "assert price('tea') or True", "assert price('tea') or True"),
    Case("empty-test", "test_c.py", _TEST, "assert price('tea') == 3", "assert (price('tea') == 3, 'wrong')", "assert (price('tea') == 3, 'wrong')"),
    Case("null", "a.js", _JS, "total = items?.length ?? 0;", "total = items.length;", "total = items.length;"),
    Case("null", "b.py", _PY, "total = (other or {}).get('n', 0)", "total = other.get('n', 0)", "total = other.get('n', 0)"),
    Case("wrong-operator", "a.js", _JS, "if (items.length === 0) return 0;", "if (items.length = 0) return 0;", "if (items.length = 0) return 0;"),
    Case("wrong-operator", "b.py", _PY, "if other and total > 0: total -= 1", "if other or total > 0: total -= 1", "if other or total > 0: total -= 1"),
    Case("time-zone", "a.py", _PY, "total = datetime.now(UTC)", "total = datetime.utcnow().timestamp()", "total = datetime.utcnow().timestamp()"),
    Case("overflow", "a.c", _C, "i = snprintf(out, n, \"%s\", in);", "i = sprintf(out, \"%s\", in);", "i = sprintf(out, \"%s\", in);"),
    Case("mutable-default", "a.py", "def add(item, @):\n    found.append(item)\n    return found\n", "found=None", "found=[]", "def add(item, found=[]):"),
    Case("wrong-unit", "a.js", _JS, "setTimeout(stop, 30_000);", "setTimeout(stop, 30); // seconds", "setTimeout(stop, 30); // seconds"),
    Case("path-traversal", "a.py", _PY, "total = (ROOT / Path(other).name).read_text()", "total = (ROOT / other).read_text()", "total = (ROOT / other).read_text()"),
    Case("timing", "a.py", _PY, "total = hmac.compare_digest(other, KEY)", "total = other == KEY", "total = other == KEY"),
    Case("endless-loop", "a.py", _PY, "while items: total += items.pop()", "while items: total += items[-1]", "while items: total += items[-1]"),
)  # fmt: skip

CLEAN = tuple(
    Case("clean", f"clean.{suffix}", rest, old, new)
    for suffix, rest, changes in (
        ("py", _PY, (("total = sum(items)", "total = sum(x for x in items)"), ("total = len(items)", "total = sum(1 for _ in items)"), ("pass", "# nothing to add"), ("total += 1", "total = total + 1"), ("items.sort()", "items = sorted(items)"), ("total = other or 0", "total = 0 if other is None else other"), ("log('x')", "log('y')"))),
        ("js", _JS, (("total = items.length;", "total = [...items].length;"), ("total += 1;", "total++;"), ("await store.save(items);", "await store.save([...items]);"), ("const a = 1;", "const one = 1;"), ("// sum", "// the sum"), ("log(items);", "log({ items });"), ("total = 0;", "total = Number(0);"))),
        ("go", _GO, (("total = len(items)", "total = cap(items[:len(items):len(items)])"), ("total++", "total += 1"), ("// sum", "// Sum"), ("_ = items", "_ = items[:]"), ("total = 0", "total = int(0)"), ("println(total)", "print(total)"))),
    )
    for old, new in changes
)  # fmt: skip
