"""Checks of single settings beyond their type, and masks for showing secrets.

A check converts the raw value or raises ValueError with what is expected; the error never has
the value, which may be a secret pasted into the wrong place.
"""

import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


def api_key(text: str) -> str:
    """Return a key as an HTTP header can carry it."""
    key = text.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("holds spaces or characters that no key has: copy it again")
    return key


def base_url(text: str) -> str:
    """Return an https URL without a trailing slash; plain http only to this machine."""
    return _service_url(text, "https://api.moonshot.cn/v1", "KIMI_API_KEY")


def memory_url(text: str) -> str:
    """Return the URL of the memory service, with the rules of `base_url`; empty means none."""
    if not text.strip():
        return ""
    return _service_url(text, "https://memory.example.com/v1", "KODE_MEMORY_KEY")


def _service_url(text: str, example: str, key_name: str) -> str:
    url = _split(text)
    if url is None or url.scheme not in ("http", "https") or url.query or url.fragment:
        raise ValueError(f"expected a URL such as {example}")
    if url.username is not None:
        raise ValueError(f"holds a user name or password: give the key as {key_name}")
    if url.scheme == "http" and not _LOOPBACK.fullmatch(url.hostname or ""):
        raise ValueError("plain http goes to this machine only (localhost): use https")
    return text.strip().rstrip("/")


def proxy(text: str | None) -> str | None:
    """Return an HTTP proxy, user and password allowed; empty means none."""
    if not text or not text.strip():
        return None
    url = _split(text)
    if url is None or url.scheme not in ("http", "https"):
        raise ValueError("expected a URL such as http://proxy.example:3128")
    return text.strip()


def _split(text: str) -> SplitResult | None:
    """Return the parts of a URL with a host and a valid port, or None."""
    text = text.strip()
    if not text.isprintable() or re.search(r"\s", text):
        return None
    try:
        url = urlsplit(text)
        return url if url.hostname and url.port != 0 else None
    except ValueError:
        return None


def locale(text: str) -> str:
    """Return `zh` or `en`, also from a full tag such as `zh-CN` or `en_US.UTF-8`."""
    language = re.split(r"[-_.]", text.strip().lower(), maxsplit=1)[0]
    if language not in ("zh", "en"):
        raise ValueError("use one of zh, en")
    return language


def file_encoding(text: str | None) -> str | None:
    """Return the name of a text encoding Python knows; empty means none."""
    if not text or not text.strip():
        return None
    try:
        "".encode(text.strip())
    except (LookupError, ValueError):
        raise ValueError("is no known encoding: use a name such as gbk or shift_jis") from None
    return text.strip()


def folder(text: str) -> Path:
    """Return an absolute folder; `~` is the home folder. It need not exist yet."""
    try:
        path = Path(text.strip()).expanduser()
    except RuntimeError:
        path = Path()
    if not path.is_absolute() or "\0" in text:
        raise ValueError("expected an absolute path: the working directory is the editor's choice")
    return path


def folders(texts: list[str]) -> tuple[Path, ...]:
    """Return absolute folders in the given order."""
    return tuple(map(folder, texts))


def masked_key(key: str) -> str:
    """Return a key as the doctor shows it: enough to distinguish two keys, not to use one."""
    if not key:
        return "not set"
    return f"set, ends in {key[-4:]}" if len(key) >= 24 else "set"


def masked_proxy(url: str | None) -> str | None:
    """Return a proxy without its user and password."""
    return None if url is None else re.sub(r"//[^/]*@", "//***@", url)
