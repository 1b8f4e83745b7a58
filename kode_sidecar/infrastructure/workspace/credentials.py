"""Files that must not reach a model because of their names: they hold credentials (W11)."""

import re
from collections.abc import Sequence

from kode_sidecar.infrastructure.workspace.sensitive import fold_name, matches_any

_FOLDERS = frozenset(
    {".ssh", ".aws", ".azure", ".gnupg", ".gcloud", ".oci", ".aliyun", ".password-store"}
)
_FILE_WORDS = """
    .env .env.* .env-* .env_* *.env env .envrc .flaskenv .dev.vars
    *.pem *.key *.p8 *.p12 *.pfx *.jks *.keystore *.kdbx *.kdb *.ppk *.gpg *.ovpn *.agekey
    *.tfstate *.tfstate.* *.tfvars *.auto.tfvars.json
    id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk *_rsa *_dsa *_ecdsa *_ed25519
    .npmrc .yarnrc.yml .netrc _netrc .pypirc .git-credentials .pgpass pgpass.conf .my.cnf
    .htpasswd .dockercfg .dockerconfigjson .vault-token .vault_pass .vault_pass.* vault_pass.txt
    .s3cfg .boto .rclone.conf rclone.conf .terraformrc terraform.rc .condarc .curlrc .wgetrc
    kubeconfig kubeconfig.* *.kubeconfig .kubeconfig
    credentials credentials.* *.credentials .credentials *-credentials.json *_credentials.json
    application_default_credentials.json client_secret*.json *service-account*.json
    *service_account*.json google-services.json googleservice-info.plist
    secret secrets .secrets secret.* secrets.* *.secret *.secrets *-secret.y*ml *-secrets.y*ml
    token.json .token auth.json .authinfo .authinfo.* login.keyring
    wp-config.php master.key local.settings.json .pgsql_history .mysql_history
    .bash_history .zsh_history .python_history .psql_history .rediscli_history .node_repl_history
"""
_FILES = tuple(_FILE_WORDS.split())
_HARMLESS = (
    *("*.example", "*.sample", "*.template", "*.tmpl", "*.dist", "*.defaults", "*.pub", "*.md"),
    *("*.py", "*.js", "*.ts", "*.tsx", "*.jsx", "*.go", "*.rs", "*.java", "*.kt", "*.cs", "*.rb"),
    *("*.c", "*.h", "*.cc", "*.cpp", "*.swift", "*.scala", "*.html", "*.css", "*.vue", "*.lua"),
    *("*.rst", "*.pyi", "*.po", "*.sh", "*.ps1"),
)
_IN_FOLDER = {
    (".git", "config"),
    (".kube", "config"),
    ("gcloud", "credentials.db"),
    (".docker", "config.json"),
    (".cargo", "credentials"),
    (".cargo", "credentials.toml"),
    (".m2", "settings.xml"),
    (".gradle", "gradle.properties"),
    (".config", "hub"),
    ("gh", "hosts.yml"),
}
# What editors and people put behind the name of a copy: `.env~`, `id_rsa.bak`, `.env.swp`.
_TAIL = re.compile(
    r"(?:~|[._-](?:bak|backup|old|orig|original|save|saved|copy|tmp|temp|new|prev|sw[a-p]|rej|"
    r"disabled|\d{1,14})|\s?\(\d{1,3}\)|\s-\scopy)\Z"
)

SECRET_PATTERNS = (
    *sorted(f"{name}/**" for name in _FOLDERS),
    *_FILES,
    *sorted("/".join(names) for names in _IN_FOLDER),
)
"""Names at any depth, as people read them; but for the harmless ones. Copies count as well."""


def is_secret_path(parts: Sequence[str]) -> bool:
    """Return whether a file holds credentials by its name. `parts` lead down from a root."""
    names = [fold_name(part) for part in parts]
    if not names:
        return False
    if any(name in _FOLDERS for name in names[:-1]):
        return not names[-1].endswith(".pub")
    return any(_is_secret(names[:-1], name) for name in _originals(names[-1]))


def _is_secret(folders: Sequence[str], name: str) -> bool:
    if matches_any(name, _HARMLESS):
        return False
    return matches_any(name, _FILES) or (*folders[-1:], name) in _IN_FOLDER


def _originals(name: str) -> list[str]:
    """Return the name, and those of which it may be a copy."""
    names = [name]
    if name.startswith("#") and name.endswith("#"):
        names.append(name.strip("#"))
    if name.startswith((".#", "._")):
        names.append(name[2:])
    for known in names:  # grows while it is read: `.env.bak.1` is a copy of a copy
        shorter = _TAIL.sub("", known)
        if shorter and shorter != known:
            names.append(shorter)
        if known.startswith(".") and known != name:
            names.append(known[1:])  # vim's swap file of `id_rsa` is `.id_rsa.swp`
        if len(names) > 8:
            break
    return names
