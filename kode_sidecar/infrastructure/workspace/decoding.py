"""Decodes a file's bytes: by BOM, then strict UTF-8, then the configured encoding, else an error.

Nothing is ever replaced or guessed: an edit would write a wrong guess back.
"""

import codecs
import re
from dataclasses import dataclass
from encodings.aliases import aliases

from kode_sidecar.errors import KodeError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# GB 18030 extends the other two; editors that say GBK mean the largest of them.
_CHINESE = {"gb2312", "gbk", "gb18030"}
# Without a byte order, these codecs would write a BOM that was not there.
_WITHOUT_BOM = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_BINARY_PROBE_BYTES = 8192
_CODECS = tuple(dict.fromkeys([*aliases, *aliases.values()]))


@dataclass(frozen=True)
class DecodedText:
    """A file's text without BOM; `encoding` is a codec's name."""

    text: str
    encoding: str
    bom: bool


def python_codec(name: str | None) -> str | None:
    """Return the codec for the setting `fileEncoding`. Raises KodeError `ConfigInvalid`."""
    if not name:
        return None
    try:
        "".encode(name)
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        raise KodeError(
            "ConfigInvalid",
            f'The setting fileEncoding is "{name}", which is no known text encoding. '
            'Use a name such as "gb18030", "big5", "shift_jis" or "cp1252".',
        ) from None
    return "gb18030" if codec in _CHINESE else _WITHOUT_BOM.get(codec, codec)


def character_set(name: str | None) -> str | None:
    """Return the codec whose characters a file with the setting `fileEncoding` can hold.

    We read GBK as GB 18030, but an editor that saves GBK loses characters that GBK lacks.
    """
    codec = python_codec(name)
    return codecs.lookup(name).name if name and codec == "gb18030" else codec


def editor_charset(name: str) -> str:
    """Return the codec whose characters an editor can save in an encoding of that name.

    Editors write `windows1252`, `iso88591`, `utf8bom` and `ucs-2le`. Empty for an unknown name.
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower()).removesuffix("bom")
    plain = re.sub(r"^(windows|cp)(?=[0-9])", "cp", plain)
    plain = re.sub(r"^(utf|ucs)(16|2|32|4)(le|be)?$", "utf8", plain)  # they hold any character
    known = (one for one in _CODECS if re.sub(r"[^a-z0-9]", "", one) == plain)
    codec = next(filter(_is_text, (*known, plain, name)), None)
    return codecs.lookup(codec).name if codec is not None else ""


def _is_text(codec: str) -> bool:
    try:
        return "".encode(codec) == b""
    except (LookupError, ValueError):
        return False


def is_binary(data: bytes) -> bool:
    """Return whether the first 8 KB hold a NUL, without a BOM of an encoding that has NULs."""
    return b"\x00" in data[:_BINARY_PROBE_BYTES] and not data.startswith(
        tuple(bom for bom, _ in _BOMS)
    )


def is_utf8(data: bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def encode(text: str, encoding: str, *, bom: bool) -> bytes:
    """Encode a text in the encoding that `decode` found. Raises UnicodeEncodeError."""
    mark = next((mark for mark, name in _BOMS if name == encoding), b"") if bom else b""
    return mark + text.encode(encoding)


def decode(data: bytes, name: str, file_encoding: str | None) -> DecodedText:
    """Return the text of a file called `name`. Raises KodeError `NotEditable`."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return DecodedText(data[len(bom) :].decode(encoding), encoding, True)
            except UnicodeDecodeError:
                raise KodeError(
                    "NotEditable", f"{name} begins as {encoding} (BOM) but is not valid {encoding}."
                ) from None
    wide = (file_encoding or "").startswith(("utf-16", "utf-32"))
    if is_binary(data) and not wide:
        raise KodeError("NotEditable", f"{name} is a binary file; there is no text to read.")
    for encoding in ("" if is_binary(data) else "utf-8", file_encoding):
        if encoding:
            try:
                return DecodedText(data.decode(encoding), encoding, False)
            except UnicodeDecodeError:
                continue
    tried = f"neither UTF-8 nor {file_encoding}" if file_encoding else "not UTF-8"
    raise KodeError(
        "NotEditable",
        f"{name} is {tried}. Ask the user to open it in the editor, or to set fileEncoding to the "
        'encoding of the project (for example "gb18030").',
        details={"reason": "encoding"},
    )
