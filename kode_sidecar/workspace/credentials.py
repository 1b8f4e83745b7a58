"""What must not reach a model: files that hold credentials, by name and by content (W11)."""

import re
from collections.abc import Sequence

from kode_sidecar.workspace.sensitive import fold_name, matches_any

_FOLDERS = frozenset({".ssh", ".aws", ".azure", ".gnupg", ".gcloud"})
_FILE_WORDS = """
    .env .env.* *.env
    *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.tfstate *.tfstate.backup
    id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
    .npmrc .netrc _netrc .pypirc .git-credentials .pgpass .my.cnf .htpasswd .dockercfg
    .vault-token .s3cfg .boto credentials credentials.json credentials.toml
    application_default_credentials.json client_secret*.json *service-account*.json
    *service_account*.json secrets.json secrets.yml secrets.yaml secrets.toml
"""
_FILES = tuple(_FILE_WORDS.split())
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist", "*.defaults")
_IN_FOLDER = {
    (".git", "config"),
    (".kube", "config"),
    ("gcloud", "credentials.db"),
    (".docker", "config.json"),
}

SECRET_PATTERNS = (
    *sorted(f"{name}/**" for name in _FOLDERS),
    *_FILES,
    *sorted("/".join(names) for names in _IN_FOLDER),
)
"""Names at any depth, as people read them; but for the harmless ones."""

# (a literal that must occur, the pattern, what it is): the literal keeps the search fast.
_CONTENT = tuple(
    (literal, re.compile(pattern), what)
    for literal, pattern, what in (
        (
            "PRIVATE KEY-----",
            r"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY-----[\s\S]{0,300}?[A-Za-z0-9+/=]{40}",
            "a private key",
        ),
        ("AKIA", r"\bAKIA(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b", "an AWS access key"),
        ("ASIA", r"\bASIA(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b", "an AWS access key"),
        ("sk-", r"(?<![\w-])sk-(?:ant|proj|svcacct)-[\w-]{20,}", "an API key"),
        ("sk-", r"(?<![\w-])sk-(?=[A-Za-z]*\d)[A-Za-z0-9]{24,}(?![\w-])", "an API key"),
        *(
            (f"gh{kind}_", rf"\bgh{kind}_[A-Za-z0-9]{{36,}}\b", "a GitHub token")
            for kind in "opsur"
        ),
        ("github_pat_", r"\bgithub_pat_\w{22,}", "a GitHub token"),
        ("glpat-", r"\bglpat-[\w-]{20,}", "a GitLab token"),
        ("npm_", r"\bnpm_[A-Za-z0-9]{36}\b", "an npm token"),
        ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}", "a Slack token"),
        ("AIza", r"\bAIza[\w-]{35}(?![\w-])", "a Google API key"),
    )
)

_WHOLE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]{0,24}PRIVATE KEY-----|\Z)"
)


def is_secret_path(parts: Sequence[str]) -> bool:
    """Whether a file holds credentials by its name. `parts` lead down from a root."""
    names = [fold_name(part) for part in parts]
    if not names or matches_any(names[-1], _HARMLESS):
        return False
    if any(name in _FOLDERS for name in names[:-1]) or matches_any(names[-1], _FILES):
        return True
    return tuple(names[-2:]) in _IN_FOLDER


def without_secrets(text: str) -> str:
    """The text with each credential replaced by what it was; a private key up to its end."""
    for literal, pattern, what in _CONTENT:
        if literal in text and pattern.search(text):
            whole = _WHOLE_KEY if "PRIVATE" in literal else pattern
            text = whole.sub(f"[{what}]", text)
    return text


def find_secret(text: str) -> str | None:
    """What kind of credential a text holds, or None."""
    for literal, pattern, what in _CONTENT:
        if literal in text and pattern.search(text):
            return what
    return None


def with_stars(text: str) -> str:
    """`text` with a star for every character of a credential: places in it stay as they are."""
    for literal, pattern, _what in _CONTENT:
        if literal in text:
            text = pattern.sub(lambda match: "*" * len(match[0]), text)
    return text
