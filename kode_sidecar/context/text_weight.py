"""How many tokens a text has, about, without a tokenizer. Pure.

Tokenizers cut a text into words, groups of three digits, and marks, and most of these pieces are
one token each: so the pieces are counted. What is random has no words: hex digests and base64 are
weighed by their length, and all that is not ASCII by its bytes. `python3 dev.py bench --only
estimate` shows how far this is from a real tokenizer, by kind of text.
"""

import re

_TOKENS_PER_PIECE = 0.95
# What is usual comes first: a history of thousands of messages is weighed before it is sent.
_PIECE = re.compile(
    r" ?(?:[a-z]+|[^A-Za-z0-9\s]{1,3}|[A-Z](?:[a-z]+|[A-Z]*)|[0-9]{1,3})"
    r"|[\r\n]+[ \t]*|[ \t]+(?=[ \t])"
)
# A space belongs to the word after it; before a number it is a token of its own, mostly.
_SPACE_BEFORE_NUMBER = re.compile(" (?=[0-9])")
_TOKENS_PER_SUCH_SPACE = 0.85
# Only in a long run there can be anything without words; most texts have none.
_RUN = re.compile(r"[A-Za-z0-9+/]{14,}={0,2}")
# Each kind of run without words, and its tokens per character.
_DENSE = (
    (re.compile(r"(?=[a-fA-F]{0,20}[0-9])[0-9a-fA-F]{16,}"), 0.60),  # hex
    (
        re.compile(r"(?=[A-Za-z+/]{0,40}[0-9])(?=[a-z0-9+/]{0,40}[A-Z])[A-Za-z0-9+/]{24,}={0,2}"),
        0.69,  # base64
    ),
    (re.compile(r"[a-z]{20,}|[A-Z]{14,}"), 0.35),  # letters that are no words
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_TOKENS_PER_BYTE = 0.25
# Of a long text this many pieces of this length are looked at, evenly spread.
_SAMPLES = 6
_SAMPLE = 256


def text_weight(text: str) -> float:
    """Return the tokens of a text as a usual tokenizer counts them, within 15 % or so."""
    size = len(text)
    if size <= _SAMPLES * _SAMPLE:
        return _weight(text)
    step = (size - _SAMPLE) / (_SAMPLES - 1)
    starts = [int(number * step) for number in range(_SAMPLES)]
    seen = sum(_weight(text[at : at + _SAMPLE]) for at in starts)
    return seen * size / (_SAMPLES * _SAMPLE)


def _weight(text: str) -> float:
    weight = 0.0
    if not text.isascii():
        size = len(text.encode("utf-8", "replace")) - len(text.encode("ascii", "ignore"))
        weight += size * _TOKENS_PER_BYTE
        text = _NOT_ASCII.sub(" ", text)
    if runs := _RUN.findall(text):
        rest = " ".join(runs)
        for pattern, rate in _DENSE:
            if dense := pattern.findall(rest):
                weight += len("".join(dense)) * rate
                rest = pattern.sub("", rest)
        text = f"{_RUN.sub('', text)} {rest}"
    pieces = len(_PIECE.findall(text)) * _TOKENS_PER_PIECE
    return weight + pieces + len(_SPACE_BEFORE_NUMBER.findall(text)) * _TOKENS_PER_SUCH_SPACE
