"""Credentials in a text: found by the forms their issuers give them, and masked (W11, W14, W20).

A search looks for the literal each form begins with, which is fast, and tries the form only there.
The forms are bounded, and so is the number of places that are tried: no text makes it slow.

All text that goes to files or streams for others passes one `SecretMask`. It replaces whole
credentials: keys in use, even if the text was cut inside of one, all that `find_secret` finds,
private keys up to their last line, and the values of headers and members with such a name. It
finds each in plain form, behind escapes of any depth (`\\n`, `\\\\n`, `\\u002b`, `%2B`), with any
line ends, and in base64, wrapped or not.
"""

import json
import re
from binascii import a2b_base64
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from kode_sidecar.core.text.secret_forms import (
    BEGIN,
    BEHIND,
    CUT,
    CUT_OFF,
    FORMS,
    INNER,
    NAMED,
    PRIVATE_KEY,
)

MAX_PLACES = 20_000
"""More beginnings of one kind than this, without the rest, count as a credential themselves."""
MASK = "***"

_STEP = 4_000_000
_GOES_ON = re.compile("[A-Za-z0-9]")
# A shorter piece of a key reveals nothing and may be an ordinary word, except at a cut.
_SHORTEST_PIECE, _SHORTEST_CUT = 10, 5
_CUT = re.compile(CUT)
# The usual escapes, as long as before; an apostrophe, for a quote would end the text around it.
_PLAIN = (("\\n", "\n\n"), ("\\r", "\r\r"), ("\\t", "\t\t"), ('\\"', "''"))
_ESCAPE = re.compile(r"\\+(?:u00([2-7][0-9A-Fa-f])|(/))|%([2-7][0-9A-Fa-f]|0[AaDd])")
_WITHIN = re.compile(r"""(\\+)(?:(u)[0-9A-Fa-f]{4}|([nrt/"]))|\\\\|[^\r\n]""")
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+"
    r"(?:[\s\\]{1,20}[A-Za-z0-9+/]{20,}+)*+(?:[\s\\]{1,20}[A-Za-z0-9+/]{1,80}+(?==|\s|\Z))?={0,2}"
)
_URL_SAFE = str.maketrans("-_", "+/")
_BETWEEN = re.compile(r"[\s\\]+")
_DEPTH = 2
_MOST_CUT = 3
_DISTINCT = 4
_DIGIT = re.compile(r"[0-9]")


class Secret(NamedTuple):
    """A credential in `text[start:end]`; `what` says of which kind it is."""

    start: int
    end: int
    what: str


_Rule = tuple[str, re.Pattern[str], str]


@lru_cache(2)
def _rules(table: Sequence[tuple[str, str, str]]) -> tuple[_Rule, ...]:
    """Return the table, compiled at the first search."""
    return tuple(
        (one, re.compile(re.escape(one) + form, re.ASCII), what) for one, form, what in table
    )


@lru_cache(1)
def _begun_key() -> re.Pattern[str]:
    return re.compile(re.escape(BEGIN) + PRIVATE_KEY)


def find_secret(text: str) -> str | None:
    """Return what kind of credential a text holds, or None."""
    return next((secret.what for secret in _in_all_views(_narrow(text), _secrets)), None)


def find_in_data(data: bytes) -> str | None:
    """Return what kind of credential the bytes of a file hold, of any encoding, or None."""
    return find_secret(data.decode(_encoding_of(data), "surrogatepass"))


class SecretMask:
    """Masks the credentials in a text; `keys` are those in use, of any form.

    The result reveals nothing of them but their line ends. Linear in the length of the text.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        forms = {
            form
            for key in keys
            for form in (key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1])
        }
        self._keys = sorted({_narrow(form) for form in forms if form}, key=len, reverse=True)

    def stars(self, text: str, *, json_line: bool = False) -> str:
        """Return the text with a star for each masked character, so that offsets stay the same.

        Line ends stay too. With `json_line` every JSON string stays closed.
        """
        return self._replaced(text, lambda part, _: _stars(part), json_line=json_line)

    def labels(self, text: str) -> str:
        """Return the text with the kind of each credential in its place: `[a private key]`."""
        return self._replaced(text, lambda _, what: f"[{what}]" if what else MASK)

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a file of any encoding with stars; as many bytes as before."""
        encoding = _encoding_of(data)
        return self.stars(data.decode(encoding, "surrogatepass")).encode(encoding, "surrogatepass")

    def _replaced(
        self, text: str, replacement: Callable[[str, str], str], *, json_line: bool = False
    ) -> str:
        done, pieces = 0, list[str]()
        found = sorted(_in_all_views(_narrow(text), self._all, json_line=json_line))
        for start, end, what in _joined(found):
            pieces += [text[done:start], replacement(text[start:end], what)]
            done = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def _all(self, text: str) -> Iterator[Secret]:
        for key in self._keys:
            yield from _pieces_of(key, text)
        if BEGIN in text:
            for match in _begun_key().finditer(text):
                yield Secret(*match.span(), "a private key")
        yield from _secrets(text, cut=True)
        yield from _secrets(_narrow(text.lower()), NAMED)


def _narrow(text: str) -> str:
    """Return a text of equal length with one-byte characters, where search is ten times faster."""
    if text.isascii():
        return text
    return text.replace("…", "\x85").encode("latin-1", "replace").decode("latin-1")


def _encoding_of(data: bytes) -> str:
    """Return an encoding that holds any bytes, or that of two bytes a character."""
    for encoding, high in (("utf-16-le", data[1:80:2]), ("utf-16-be", data[:80:2])):
        if len(data) % 2 == 0 and high.count(0) > len(high) // 2:
            return encoding
    return "latin-1"


def _joined(found: Sequence[Secret]) -> Iterator[Secret]:
    """Yield the credentials with overlapping ones joined."""
    last: Secret | None = None
    for secret in found:
        if last is None or secret.start >= last.end:
            if last is not None:
                yield last
            last = secret
        elif secret.end > last.end or not last.what:
            last = Secret(last.start, max(last.end, secret.end), last.what or secret.what)
    if last is not None:
        yield last


def _secrets(
    text: str, table: Sequence[tuple[str, str, str]] = FORMS, *, cut: bool = False
) -> Iterator[Secret]:
    """Yield the credentials in the order of their kinds; with `cut` what is left of one, too."""
    for literal, form, what in _rules(table):
        inner = literal in INNER or not (what or literal == "sk-")
        at, tried = _find(text, literal, 0), 0
        while at >= 0:
            inside_word = literal[0].isalnum() and at > 0 and _GOES_ON.match(text, at - 1)
            match = None if inside_word and not inner else form.match(text, at)
            tried = 0 if match else tried + 1
            if match:
                start, end = match.span(match.lastindex or 0)
                yield Secret(
                    start - len(_behind(text, at)) if literal in INNER else start, end, what
                )
            elif tried > MAX_PLACES and what:
                yield Secret(at, len(text), what)
                break
            elif cut and not (inside_word or inner or literal == "://"):
                rest = CUT_OFF.match(text, at + len(literal))
                if rest and (len(literal) >= _DISTINCT or _DIGIT.search(rest[0])):
                    yield Secret(at, rest.end(), what)
            at = _find(text, literal, match.end() if match else at + 1)


def _behind(text: str, at: int) -> str:
    found = BEHIND.search(text[max(0, at - 64) : at])
    return found[0] if found else ""


def _find(text: str, literal: str, start: int) -> int:
    """Return what `text.find` does, in steps: one search keeps every other thread waiting."""
    if len(text) <= _STEP:
        return text.find(literal, start)
    while start < len(text):
        at = text.find(literal, start, start + _STEP + len(literal) - 1)
        if at >= 0:
            return at
        start += _STEP
    return -1


def _pieces_of(key: str, text: str) -> Iterator[Secret]:
    """Yield the places of a key, and of a piece of it that is left where a text was cut off."""
    whole = min(len(key), _SHORTEST_PIECE)
    for at in _places(text, key[: min(len(key), _SHORTEST_CUT)]):
        end = at + _common(key, text[at : at + len(key)])
        if end - at >= whole or _CUT.match(text, end):
            yield Secret(at, end, "")
    for at in _places(text, key[-whole:]):
        end = at + whole
        length = _common(key[::-1], text[max(0, end - len(key)) : end][::-1])
        yield Secret(end - length, end, "")


def _places(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + 1)


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


class _Escapes:
    """The escapes of a text, what it reads like without them, and where that stands in the text."""

    def __init__(self, text: str) -> None:
        spans = [match.span() for match in _ESCAPE.finditer(text)]
        self._shifts = [0, *accumulate(end - start - 1 for start, end in spans)]
        self._at = [start - self._shifts[n] for n, (start, _) in enumerate(spans)]
        self.text = _ESCAPE.sub(_meaning, text) if spans else text

    def in_text(self, secret: Secret) -> Secret:
        """Return where a credential of `self.text` stands."""
        start, end = (at + self._shifts[bisect_left(self._at, at)] for at in secret[:2])
        return Secret(start, end, secret.what)


def _meaning(match: re.Match[str]) -> str:
    code = match[1] or match[3]
    return chr(int(code, 16)) if code else "/"


def _whole(text: str, secret: Secret) -> Secret:
    """Return a credential with the escape that its start cuts, without one that its end cuts."""
    start, end, what = secret
    while start > 0 and text[start - 1] == "\\" and text[start] in 'nrt"/u\\':
        start -= 1
    while end > start and text[end - 1] == "\\":
        end -= 1
    return Secret(start, end, what)


def _in_all_views(
    text: str,
    find: Callable[[str], Iterator[Secret]],
    *,
    json_line: bool = False,
    depth: int = _DEPTH,
) -> Iterator[Secret]:
    """Yield what `find` finds in a text, behind its escapes, and in the base64 that it holds."""
    yield from (_whole(text, secret) for secret in find(text))
    plain = text
    for escape, meaning in _PLAIN if "\\" in text else ():
        plain = plain.replace(escape, meaning)
    if not json_line and BEGIN in plain:
        plain = plain.replace('"', "'")
    if plain != text:
        yield from (_whole(text, secret) for secret in find(plain))
    escapes = _Escapes(plain)
    if escapes.text != plain:
        yield from (_whole(text, escapes.in_text(secret)) for secret in find(escapes.text))
    if depth:
        yield from map(escapes.in_text, _encoded(escapes.text, find, depth))


def _encoded(text: str, find: Callable[[str], Iterator[Secret]], depth: int) -> Iterator[Secret]:
    """Yield the base64 that holds a credential; all that it holds is looked through at once."""
    pieces, spans, begins, length = list[str](), list[tuple[int, int]](), list[int](), 0
    for match in _ENCODED.finditer(text):
        decoded = _decoded(match[0])
        if decoded is not None:
            pieces.append(decoded)
            spans.append(match.span())
            begins.append(length)
            length += len(decoded) + 1
    if pieces:
        for secret in _in_all_views("\n".join(pieces), find, depth=depth - 1):
            first, last = (bisect_right(begins, at) for at in (secret.start, secret.end - 1))
            for start, end in spans[first - 1 : last]:
                yield Secret(start, end, secret.what)


def _decoded(encoded: str) -> str | None:
    """Return the text that base64 holds, also of two bytes a character; None if it holds none."""
    head = encoded[:24].translate(_URL_SAFE)
    if not _is_plain(a2b_base64(head)):
        return None
    whole = _BETWEEN.sub("", encoded).rstrip("=").translate(_URL_SAFE)
    data = a2b_base64(whole[: len(whole) // 4 * 4] + _padded(whole[len(whole) // 4 * 4 :]))
    return data.replace(b"\0", b"").decode("latin-1")


def _padded(rest: str) -> str:
    return rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""


def _is_plain(data: bytes) -> bool:
    """Return whether it begins like a text; its last character may be cut."""
    data = data.replace(b"\0", b"").translate(None, b"\t\r\n")
    text = data.decode("utf-8", "ignore")
    known = text.encode()
    return text.isprintable() and data.startswith(known) and len(data) - len(known) <= _MOST_CUT


def _stars(part: str) -> str:
    return _WITHIN.sub(_star, part)


def _star(match: re.Match[str]) -> str:
    """Return as many characters, which mean as many at every depth of escapes."""
    slashes, code, char = match.groups()
    if code:
        return f"{slashes}u002a"
    if slashes and char and (char in "nr" or (char == '"' and len(slashes) > 1)):
        return match[0]  # behind more than one, it may be the quote that ends a string
    return f"{slashes}t" if slashes else "\\t" if len(match[0]) == 2 else "*"
