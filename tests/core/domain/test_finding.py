"""Findings: quotes at their true lines, one finding a fault, and what a review again says."""

from random import Random

from msgspec.structs import replace

from kode_sidecar.core.domain.finding import ReviewFinding, compared, located, merged
from kode_sidecar.core.text.moved_lines import lines_moved

TEXT = (
    "def a():\n    return 1\n\n\ndef b(x):\n"
    "    for i in range(x + 1):\n        go(i)\n    return 1\n"
)


def finding(**given: object) -> ReviewFinding:
    values: dict[str, object] = {
        "id": "n1",
        "path": "app.py",
        "start_line": 6,
        "end_line": 6,
        "severity": "error",
        "category": "off-by-one",
        "title": "The loop runs once too often",
        "explanation": "It counts to x.",
        "quote": "for i in range(x + 1):",
    }
    return ReviewFinding(**{**values, **given})  # type: ignore[arg-type]


def test_a_quote_is_found_at_its_lines_near_them_or_not_at_all() -> None:
    assert located("for i in range(x + 1):", TEXT, 6, 6) == (6, 6)
    assert located("for i in range(x + 1):\n    go(i)", TEXT, 1, 2) == (6, 7)
    assert located("return 1", TEXT, 8, 8) == (8, 8)
    assert located("return 1", TEXT, 3, 3) == (2, 2)
    assert located("for i in range(x + 2):", TEXT, 6, 6) is None
    assert located("", TEXT, 6, 6) is None
    assert located("go", TEXT, 1, 1) is None, "too short to be found elsewhere"
    assert located("go", TEXT, 7, 7) == (7, 7)


def test_duplicates_are_merged_and_two_faults_of_a_line_are_not() -> None:
    worst = finding(severity="error")
    again = finding(id="n2", severity="warning", title="Loop runs one time too often")
    other = finding(id="n3", title="Unbounded input exhausts memory", category="resource")
    same_kind = finding(id="n4", title="Comparison skips negative numbers")
    assert merged([again, worst, other, same_kind]) == [worst, other, same_kind]
    chinese = finding(id="n5", title="循环多执行了一次")
    assert merged([chinese, finding(id="n6", title="这个循环多跑了一次")]) == [chinese]


def test_a_review_again_says_what_is_new_stays_and_is_fixed() -> None:
    old = [
        finding(id="f1", path="a.py"),
        finding(id="f2", path="b.py", gone=True),
        finding(id="f3", path="c.py", state="dismissed", reason="on purpose"),
        finding(id="f4", path="d.py", gone=True),
        finding(id="f5", path="e.py", state="resolved"),
        finding(id="f6", path="a.py", start_line=90, end_line=90, title="Silent"),
    ]
    now = [
        finding(id=f"n{i}", path=path) for i, path in enumerate(("a.py", "c.py", "e.py", "z.py"))
    ]
    after = compared(old, now, ["a.py", "b.py", "c.py", "e.py", "z.py"])
    reported = {one.id: (one.path, one.state, one.news) for one in after}
    assert reported == {
        "f1": ("a.py", "open", "stays"),
        "f2": ("b.py", "fixed", "fixed"),
        "f3": ("c.py", "dismissed", "stays"),
        "f4": ("d.py", "open", "stays"),  # nobody looked at its file
        "f5": ("e.py", "open", "stays"),
        "f6": ("a.py", "open", "stays"),  # its text is there still
        "f7": ("z.py", "open", "new"),
    }
    assert after[2].reason == "on purpose"
    again = compared(after, [], ["b.py"])
    assert replace(again[1]).state == "fixed"


def test_lines_are_found_again_after_ten_random_edits() -> None:
    for seed in range(200):
        random = Random(seed)
        old = [f"line {number} {random.random()}\n" for number in range(60)]
        new = list(old)
        for edit in range(10):
            at = random.randrange(len(new) + 1)
            if random.random() < 0.5 or len(new) < 2:
                new[at:at] = [f"added {edit} {n}\n" for n in range(random.randrange(1, 4))]
            else:
                del new[at : at + random.randrange(1, 3)]
        move = lines_moved("".join(old), "".join(new))
        for number, line in enumerate(old, 1):
            place = move((number, number))
            assert place == ((new.index(line) + 1,) * 2 if line in new else None), seed
