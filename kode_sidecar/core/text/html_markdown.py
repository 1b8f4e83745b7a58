"""HTML as Markdown: what a reader of the page reads, in time linear in its length.

The parser of the standard library needs quadratic time for some broken pages, and a page may be
broken on purpose.
"""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urljoin

_MARKUP = re.compile(r"<(?=[a-zA-Z/!?])")
_TAG = re.compile(r"/?([a-zA-Z][a-zA-Z0-9-]{0,30})")
_TEXT_OF = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*){2,}")
_SKIPPED = ("script", "style", "noscript", "template", "svg", "iframe", "textarea", "select")
_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in (*_SKIPPED, "title")}
_HEADINGS = {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}
_BEGINS = {
    **_HEADINGS,
    "li": "\n- ",
    "br": "\n",
    "hr": "\n\n---\n\n",
    "td": " | ",
    "th": " | ",
    "tr": "\n",
    "code": "`",
    "dd": "\n: ",
}
_BLOCKS = frozenset(
    {
        *("p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "ul", "ol"),
        *("dl", "dt", "table", "blockquote", "form", "figure", "figcaption", "details", "summary"),
        *("pre", "address"),
    }
)
_MAX_TAG = 4_000
_QUOTE_WINDOW = 2_000


class Page:
    """A page as its title and its text."""

    def __init__(self, html: str, address: str) -> None:
        self.title = ""
        self._address = address
        self._parts: list[str] = []
        self._links: list[str] = []
        self._pre = 0
        self._read(html)
        text = _BLANK_LINES.sub("\n\n", "".join(self._parts))
        self.text = "\n".join(line.rstrip() for line in text.splitlines()).strip()

    def _read(self, html: str) -> None:
        at = 0
        while (found := _MARKUP.search(html, at)) is not None:
            self._say(html[at : found.start()])
            at = self._markup(html, found.start())
        self._say(html[at:])

    def _markup(self, html: str, opened: int) -> int:
        """Read what begins at a `<`; return where the text goes on."""
        if html.startswith("<!--", opened):
            closed = html.find("-->", opened + 4)
            return len(html) if closed < 0 else closed + 3
        tag, end = _TAG.match(html, opened + 1), _tag_end(html, opened)
        if tag is None:
            return end
        name = tag[1].lower()
        if html[opened + 1] == "/":
            self._end(name)
            return end
        if name in _ENDS:
            close = _ENDS[name].search(html, end)
            inside = close.start() if close else len(html)
            if name == "title" and not self.title:
                self.title = _TEXT_OF.sub(" ", unescape(html[end:inside])).strip()
            return inside
        self._begin(name, html[tag.end() : min(end, tag.end() + _MAX_TAG)])
        return end

    def _begin(self, name: str, attributes: str) -> None:
        if name == "a":
            self._links.append(_attribute("href", attributes))
            self._parts.append("[")
        elif name == "img":
            words = _TEXT_OF.sub(" ", unescape(_attribute("alt", attributes))).strip()
            self._parts.append(f"[image: {words}]" if words else "")
        elif name == "pre":
            self._pre += 1
            self._parts.append("\n\n```\n")
        elif name == "code" and self._pre:
            return
        else:
            self._parts.append(_BEGINS.get(name, "\n\n" if name in _BLOCKS else ""))

    def _end(self, name: str) -> None:
        if name == "a" and self._links:
            target = self._links.pop().strip()
            known = target and not target.startswith(("#", "javascript:", "data:"))
            self._parts.append(f"]({_absolute(self._address, target)})" if known else "]")
        elif name == "pre" and self._pre:
            self._pre -= 1
            self._parts.append("\n```\n\n")
        elif name == "code" and not self._pre:
            self._parts.append("`")
        elif name in _BLOCKS or name in _HEADINGS:
            self._parts.append("\n\n")

    def _say(self, text: str) -> None:
        text = unescape(text)
        if not self._pre:
            text = _TEXT_OF.sub(" ", text)
            if self._parts and self._parts[-1].endswith(("\n", " ")):
                text = text.lstrip(" ")
        if text:
            self._parts.append(text)


def _tag_end(html: str, opened: int) -> int:
    """Return where a tag ends; a `>` in quotes is none, if the quote ends soon."""
    closed = html.find(">", opened)
    if closed < 0:
        return len(html)
    for quote in ('"', "'"):
        if html.count(quote, opened, closed) % 2 and closed - opened < _QUOTE_WINDOW:
            ended = html.find(quote, closed, closed + _QUOTE_WINDOW)
            further = html.find(">", ended, ended + _QUOTE_WINDOW) if ended >= 0 else -1
            return closed + 1 if further < 0 else further + 1
    return closed + 1


def _finder(name: str) -> Callable[[str], re.Match[str] | None]:
    value = r"""(?:"([^"]*)"|'([^']*)'|([^\s>"']+))"""
    return re.compile(rf"\b{name}\s{{0,9}}=\s{{0,9}}{value}", re.IGNORECASE).search


_FIND = {name: _finder(name) for name in ("href", "alt")}


def _attribute(name: str, attributes: str) -> str:
    found = _FIND[name](attributes)
    return "" if found is None else unescape(next(filter(None, found.groups()), ""))


def _absolute(address: str, target: str) -> str:
    try:
        return urljoin(address, target)
    except ValueError:
        return target
