"""W14 W20: what leaves is masked whole, whatever is around it, and however it is written."""

import base64
import json
import random
import re
import string
import textwrap
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kode_sidecar.core.text.secret_text import SecretMask, find_in_data, find_secret
from kode_sidecar.devtools.recording.redaction import HiddenTexts, PieceMask

MOST_LEFT = 4
ALPHABET = string.ascii_letters + string.digits

Kind = Callable[[int], tuple[str, list[str]]]
"""Makes a secret from a seed, and gives the pieces of it that must not be seen."""


def body_of(seed: int, length: int, alphabet: str = ALPHABET) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


def private_key(kind: str, body: str, ends: str) -> str:
    lines = textwrap.wrap(body, 64)
    return ends.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def keys(kind: str) -> Kind:
    def made(seed: int) -> tuple[str, list[str]]:
        body = body_of(seed, 70 + seed % 400, ALPHABET + "+/")
        ends = ("\n", "\r\n")[seed % 2]
        return private_key(kind, body, ends), textwrap.wrap(body, 64)

    return made


def token(before: str, length: int, alphabet: str = ALPHABET) -> Kind:
    def made(seed: int) -> tuple[str, list[str]]:
        body = "a1B2"[: 4 if alphabet is ALPHABET else 0]
        body += body_of(seed, length - len(body), alphabet)
        return before + body, [body]

    return made


IN_USE = "tk4711-of-the-user-0815-kept"
KINDS: list[Kind] = [
    *map(keys, ("OPENSSH PRIVATE " + "KEY", "RSA PRIVATE " + "KEY", "PRIVATE " + "KEY")),
    keys("PGP PRIVATE " + "KEY BLOCK"),
    token("gh" + "p_", 36),
    token("sk-" + "ant-api03-", 90),
    token("sk-" + "proj-", 48),
    token("npm" + "_", 36),
    token("xox" + "b-123456789012-", 24),
    token("dop" + "_v1_", 64, "0123456789abcdef"),
    token("aws_secret_access_" + "key = ", 40),
    token("AIza", 35),
    lambda _seed: (IN_USE, [IN_USE]),
]


def in_json(depth: int) -> Callable[[str], str]:
    def escaped(text: str) -> str:
        for _ in range(depth):
            text = json.dumps({"a": text, "b": 1})
        return text

    return escaped


def in_unicode(text: str) -> str:
    chars = (c if n % 3 else f"\\u{ord(c):04x}" for n, c in enumerate(text))
    return '{"a":"' + "".join(chars).replace("\n", "\\n").replace("\r", "\\r") + '"}'


def without_escapes(text: str) -> str:
    return re.sub(r"\\+u00(..)", lambda m: chr(int(m[1], 16)), text.replace("\\/", "/"))


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


WAYS: list[Callable[[str], str]] = [
    lambda text: text,
    *map(in_json, (1, 2, 3)),
    in_unicode,
    lambda text: json.dumps(text).replace("/", "\\/"),
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", " "),
    lambda text: "\n".join(f'    "{line}\\n" +' for line in text.splitlines()),
    lambda text: "\n".join(f"# {line}" for line in text.splitlines()),
    lambda text: textwrap.indent(text, "        "),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.encodebytes(text.encode()).decode(),
    lambda text: json.dumps(base64.encodebytes(text.encode()).decode()),
    lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
]
CHOICES = {"seed": st.integers(0, 10**6), "kind": st.sampled_from(KINDS)}


def assert_gone(masked: str, pieces: list[str]) -> None:
    """No run of a secret's body is left that is longer than four characters."""
    size = MOST_LEFT + 1
    left = [
        piece[at : at + size]
        for piece in pieces
        for at in range(len(piece) - size + 1)
        if piece[at : at + size] in masked
    ]
    assert left == []


@settings(max_examples=400)
@given(**CHOICES, way=st.sampled_from(WAYS), around=st.sampled_from(["", "x: ", "词 ", "(\n"]))
def test_nothing_of_a_secret_survives(
    seed: int, kind: Kind, way: Callable[[str], str], around: str
) -> None:
    secret, pieces = kind(seed)
    written = way(f"{around}{secret}")
    mask = SecretMask([IN_USE])
    masked = [mask.stars(written), mask.labels(written)]
    masked += [mask.stars(written, json_line=True)] if is_json(written) else []
    if not re.search(r"BEGIN|_|-", written):  # it is base64
        pieces = re.findall(r"[A-Za-z0-9+/]{24,}", written)
    for one in masked:
        assert_gone(without_escapes(one), pieces)


@settings(max_examples=200)
@given(**CHOICES, depth=st.integers(1, 3), data=st.data())
def test_a_line_of_json_stays_one_with_its_places(
    seed: int, kind: Kind, depth: int, data: st.DataObject
) -> None:
    around = st.text('ab\n"\\/ 词:,{}', max_size=20)
    text = data.draw(around) + " " + kind(seed)[0] + data.draw(around)
    line = in_json(depth)(text)
    value = SecretMask([IN_USE]).stars(line, json_line=True)
    assert len(value) == len(line)
    for _ in range(depth):
        value = json.loads(value)["a"]
    assert len(value) == len(text)
    assert [n for n, char in enumerate(value) if char == "\n"] == [
        n for n, char in enumerate(text) if char == "\n"
    ]


@given(**CHOICES, cut=st.integers(5, 60))
def test_nothing_of_one_that_was_cut_off_survives(seed: int, kind: Kind, cut: int) -> None:
    secret, pieces = kind(seed)
    for end in ("…", ""):
        masked = SecretMask([IN_USE]).stars(secret[: len(secret) - len(pieces[-1]) + cut] + end)
        if "secret_access" not in secret and cut < len(pieces[-1]):
            assert_gone(masked, pieces)


@settings(max_examples=150)
@given(**CHOICES, data=st.data())
def test_what_comes_in_pieces_is_written_over(seed: int, kind: Kind, data: st.DataObject) -> None:
    secret, pieces = kind(seed)
    said = f"it is {secret} and that was all"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=20)))
    mask = SecretMask([IN_USE])
    masks, file = PieceMask(mask), bytearray()
    for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True):
        delta = {"blockId": "b1", "at": start, "add": said[start:end]}
        other = {"blockId": "b2", "at": start, "add": "meanwhile"}
        for one in (delta, other):
            frame = {"method": "kode/delta", "params": {"deltas": [one]}}
            line = json.dumps(
                {"lane": "out", "t": start / 7, "frame": frame}, separators=(",", ":")
            )
            stars = masks.stars(line, len(file))
            file += mask.stars(line, json_line=True).encode() + b"\n"
            for place in stars:
                file[place] = ord("*")
    lines = [json.loads(line) for line in file.splitlines()]
    deltas = [line["frame"]["params"]["deltas"][0] for line in lines]
    joined = "".join(one["add"] for one in deltas if one["blockId"] == "b1")
    assert len(joined) == len(said)
    assert joined.startswith("it is ")
    assert_gone(joined, pieces)


def test_the_text_of_a_file_that_is_not_read_is_in_no_message() -> None:
    hidden = HiddenTexts()

    def sent(method: str, uri: str, **params: object) -> str:
        document = {"uri": uri, **({"text": params.pop("text")} if "text" in params else {})}
        frame = {"method": method, "params": {"textDocument": document, **params}}
        return hidden.without(json.dumps(frame).encode()).decode()

    by_name, other = "file:///p/.env", "file:///p/a.py"
    assert "MODE" not in sent("textDocument/didOpen", by_name, text="MODE=dev\n茶=1")
    assert "MODE" in sent("textDocument/didOpen", other, text="MODE=dev\n")
    change = [{"text": "PIN=1234"}]
    assert "PIN" not in sent("textDocument/didChange", by_name, contentChanges=change)
    assert "PIN" in sent("textDocument/didChange", other, contentChanges=change)
    leaked = "MODE=dev\nKEY=" + KINDS[4](1)[0]
    assert (
        json.loads(sent("textDocument/didOpen", other, text=leaked))["params"]["textDocument"][
            "text"
        ].count("*")
        == len(leaked) - 1
    )
    assert "PIN" not in sent("textDocument/didChange", other, contentChanges=change)
    sent("textDocument/didClose", other)
    assert "PIN" in sent("textDocument/didChange", other, contentChanges=change)


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "utf-16-le", "utf-16-be"])
def test_a_file_of_any_encoding(encoding: str) -> None:
    secret, pieces = KINDS[4](7)
    data = f"token = {secret}\n".encode(encoding)
    assert find_in_data(data) == "a GitHub token"
    masked = SecretMask().data(data)
    assert len(masked) == len(data)
    assert_gone(masked.decode(encoding), pieces)


@pytest.mark.parametrize(
    "piece",
    ["word ", "\\n", "-----BEGIN RSA PRIVATE KEY-----\\n", "eyJ-", "aGVsbG8gd29ybGQgaGVsbG8gd29y "],
)
def test_ten_times_the_text_takes_about_ten_times_as_long(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        begun = time.process_time()
        SecretMask([IN_USE]).stars(text, json_line=True)
        find_secret(text)
        return time.process_time() - begun

    seconds(1_000)
    assert seconds(3_000_000) < 40 * seconds(300_000) + 0.5
