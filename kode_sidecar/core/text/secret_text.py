"""Credentials in a text, found by the forms their issuers give them (W11).

A search looks for the literal each form begins with, which is fast, and tries the form only there.
The forms are bounded, and so is the number of places that are tried: no text makes it slow.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_PLACES = 20_000
"""So many beginnings of one kind, and nothing behind them, count as a credential themselves."""

_BEGIN, _END = "-----BEGIN ", "-----END "
_KEY_BLOCK = (
    r"(?:[A-Z0-9]{1,12} ){0,3}?PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=]{0,39}+[^A-Za-z0-9+/=]){0,60}+[A-Za-z0-9+/=]{40}"
)
# A user's name, a password that is none of those in handbooks, and a host that is not this machine.
_LOGIN = (
    r"[^\s:/@'\"<>{}$%*]{1,64}:"
    r"(?!(?:pass|passwd|password|pw|pwd|secret|user\w{0,8}|root|admin|test|example|guest|change_?me|"
    r"my\w{0,20}|your\w{0,20}|x+|\.+)@)[^\s:/@'\"<>{}$%*]{4,128}@"
    r"(?!localhost|127\.|0\.0\.0\.0|\[::1|example|(?:host(?:name)?|db|server)(?![\w.-]))[\w.-]{2,255}"
)
_ASSIGNED = r"['\"]?\s{0,3}(?:=>|=|:)\s{0,3}['\"]?"
_AWS_SECRET = rf"{_ASSIGNED}(?!\S{{0,40}}EXAMPLE)[A-Za-z0-9/+]{{40}}(?![\w/+])"

# What it begins with, what must follow, what it is. Few literals and rare ones: each costs a look
# through the whole text.
_FORMS = (
    (_BEGIN, _KEY_BLOCK, "a private key"),
    (_BEGIN, r"OpenVPN Static key V1-----\s+[0-9a-f]{32}", "a private key"),
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{58}\b", "a private key"),
    ("AKIA", r"(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b", "an AWS access key"),
    ("ASIA", r"(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b", "an AWS access key"),
    ("secret_access_key", _AWS_SECRET, "an AWS secret"),
    ("SECRET_ACCESS_KEY", _AWS_SECRET, "an AWS secret"),
    ("sk-", r"(?:ant|proj|svcacct|or)-[\w-]{20,200}", "an API key"),
    ("sk-", r"(?=[A-Za-z]{0,80}\d)[A-Za-z0-9]{24,200}(?![\w-])", "an API key"),
    *((f"gh{kind}_", r"[A-Za-z0-9]{36,255}\b", "a GitHub token") for kind in "opsur"),
    ("github_pat_", r"\w{22,255}", "a GitHub token"),
    ("glpat-", r"[\w-]{20,255}", "a GitLab token"),
    ("glrt-", r"[\w-]{20,255}", "a GitLab token"),
    ("npm_", r"[A-Za-z0-9]{36}\b", "an npm token"),
    ("pypi-AgE", r"[\w-]{50,1000}", "a PyPI token"),
    ("dckr_pat_", r"[\w-]{20,60}", "a Docker token"),
    ("xox", r"[abeoprs]-[A-Za-z0-9-]{20,255}", "a Slack token"),
    ("xapp-", r"\d-[A-Z0-9]{8,20}-\d+-[a-z0-9]{20,100}", "a Slack token"),
    ("hooks.slack.com/", r"\w{8,9}/T[A-Z0-9]{6,}/\w{6,}/\w{16,}", "a webhook"),
    ("sk_live_", r"[A-Za-z0-9]{16,255}", "a Stripe key"),
    ("rk_live_", r"[A-Za-z0-9]{16,255}", "a Stripe key"),
    ("whsec_", r"(?=[A-Za-z]{0,40}\d)[A-Za-z0-9+/]{32,64}={0,2}", "a Stripe secret"),
    ("AIza", r"[\w-]{35}(?![\w-])", "a Google API key"),
    ("GOCSPX-", r"[\w-]{28}(?![\w-])", "a Google client secret"),
    ("ya29.", r"[\w-]{40,300}", "a Google token"),
    ("eyJ", r"[\w-]{15,4000}\.eyJ[\w-]{15,8000}\.[\w-]{20,2000}", "a JSON web token"),
    ("LTAI", r"(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{12,24}(?![\w-])", "an Aliyun access key"),
    ("AKID", r"(?=[A-Za-z]{0,36}\d)[A-Za-z0-9]{32,36}(?![\w-])", "a Tencent Cloud key"),
    ("AccountKey=", r"[A-Za-z0-9+/]{80,100}==", "an Azure storage key"),
    ("SharedAccessKey=", r"[A-Za-z0-9+/]{40,60}=", "an Azure access key"),
    ("SG.", r"[\w-]{20,24}\.[\w-]{39,50}", "a SendGrid key"),
    ("dop_v1_", r"[0-9a-f]{64}", "a DigitalOcean token"),
    ("hf_", r"(?=[A-Z]{0,40}[a-z])(?=[a-z]{0,40}[A-Z])[A-Za-z]{34}\b", "a Hugging Face token"),
    ("shpat_", r"[0-9a-fA-F]{32}", "a Shopify token"),
    ("sq0", r"(?:atp-[\w-]{22}|csp-[\w-]{43})", "a Square token"),
    ("dapi", r"[0-9a-f]{32}(?:-\d)?\b", "a Databricks token"),
    ("hvs.", r"[\w-]{24,255}", "a Vault token"),
    ("lin_api_", r"[A-Za-z0-9]{40}", "a Linear key"),
    ("ntn_", r"\d{6,}[A-Za-z0-9]{30,}", "a Notion token"),
    ("://", _LOGIN, "a password in an address"),
)
_RULES = tuple(
    (literal, re.compile(re.escape(literal) + form), what) for literal, form, what in _FORMS
)
_STEP = 4_000_000
_GOES_ON = re.compile("[A-Za-z0-9]")


class Secret(NamedTuple):
    """A credential in `text[start:end]`; `what` says of which kind it is."""

    start: int
    end: int
    what: str


def find_secret(text: str) -> str | None:
    """Return what kind of credential a text holds, or None."""
    return next((secret.what for secret in _secrets(text)), None)


def without_secrets(text: str) -> str:
    """Return the text with each credential replaced by what it was; a private key up to its end."""
    return _replaced(text, lambda secret: f"[{secret.what}]", whole_keys=True)


def with_stars(text: str) -> str:
    """`text` with a star for every character of a credential: places in it stay as they are."""
    return _replaced(text, lambda secret: "*" * (secret.end - secret.start), whole_keys=False)


def _secrets(text: str) -> Iterator[Secret]:
    """Yield the credentials in the order of their kinds."""
    for literal, rule, what in _RULES:
        at, tried = _find(text, literal, 0), 0
        while at >= 0:
            inside_word = literal[0].isalnum() and at > 0 and _GOES_ON.match(text, at - 1)
            match = None if inside_word else rule.match(text, at)
            tried = 0 if match else tried + 1
            if match:
                yield Secret(at, match.end(), what)
            elif tried > MAX_PLACES:
                yield Secret(at, len(text), what)
                break
            at = _find(text, literal, match.end() if match else at + 1)


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


def _replaced(text: str, replacement: Callable[[Secret], str], *, whole_keys: bool) -> str:
    done, pieces = 0, list[str]()
    for secret in sorted(_secrets(text)):
        if secret.start < done:
            continue
        end = secret.end
        if whole_keys and text.startswith(_BEGIN, secret.start):
            end = _end_of_key(text, end)
        pieces += [text[done : secret.start], replacement(secret)]
        done = end
    return "".join([*pieces, text[done:]])


def _end_of_key(text: str, start: int) -> int:
    """Return where the block of a private key ends: behind its last line, or with the text."""
    last = text.find(_END, start)
    tail = text.find("-----", last + len(_END)) if last >= 0 else -1
    return tail + 5 if tail >= 0 else len(text)
