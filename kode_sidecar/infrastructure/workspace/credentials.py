"""Recognises by their names files that hold credentials and must not reach a model (W11)."""

import re
from collections.abc import Sequence

from kode_sidecar.infrastructure.workspace.sensitive import fold_name, matches_any

_FOLDER_WORDS = """
    .ssh .aws .azure .gnupg .gcloud .oci .aliyun .password-store .kube .cloudflared .chef .pulumi
    .subversion .bitcoin .electrum .ethereum .step .tccli .hcloud .snowsql .snowflake .terraform.d
"""
_FOLDERS = frozenset(_FOLDER_WORDS.split())
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
    *.pkcs12 *.pk8 *.bks *.jceks *.pvk *.priv *.privkey *.private *.keytab *.ccache *.wallet
    *.vault *.keychain *.keychain-db *.agilekeychain *.1pif *.psafe3 *.p12.base64
    *.publishsettings *.azureauth *private_key* *private-key* *privatekey* *privkey* private.asc
    *private*.asc *secret*.asc secring.* *-key.json *_key.json keyfile.json
    *firebase-adminsdk*.json *accesskeys.csv rootkey.csv azureprofile.json accesstokens.json
    msal_token_cache.* boto.cfg .passwd-s3fs passwd-s3fs *.tfrc *.tfrc.json .vault-password*
    .vault_password* vault-password* vault_password* vault.y*ml admin.conf kubelet.conf
    kubectl.conf kube.config wg0.conf wg1.conf *.rdp *.pcf krb5.keytab shadow gshadow
    master.passwd smbpasswd .smbcredentials sasl_passwd htpasswd *.htpasswd .htdigest
    .fetchmailrc .msmtprc .offlineimaprc .mbsyncrc .muttrc .esmtprc .gitcookies .hgrc
    sftp-config.json sftp.json .ftpconfig .remote-sync.json filezilla.xml sitemanager.xml
    recentservers.xml winscp.ini ws_ftp.ini pip.conf pip.ini settings-security.xml .sentryclirc
    .databrickscfg ngrok.yml .pg_service.conf .mylogin.cnf .mongorc.js localsettings.php
    config.inc.php wp-config*.php parameters.yml keystore.properties key.properties
    signing.properties keystore.json wallet.dat wallet.json utc--* logins.json key3.db key4.db
    signons.sqlite cookies.sqlite cookies.txt token token.txt *.token tokens.txt access_token*
    refresh_token* .token.* oauth_token* api_key api_key.* api-key.* apikey apikey.* *.apikey
    .apikey .api_key password password.txt passwords passwords.* .password .passwords *.password
    *.passwd passwd.txt *secrets.toml *secrets.json *secrets.y*ml *secret.json *-secret *_secret
    *secrets.env unattend.xml autounattend.xml .sh_history .ksh_history .ash_history
    fish_history consolehost_history.txt .sqlite_history .irb_history .php_history
    .scala_history .mongo_history .influx_history .dbshell
    .bash_history .zsh_history .python_history .psql_history .rediscli_history .node_repl_history
"""
_FILES = tuple(_FILE_WORDS.split())
_HARMLESS = (
    *("*.example", "*.sample", "*.template", "*.tmpl", "*.dist", "*.defaults", "*.pub", "*.md"),
    *("*.py", "*.js", "*.ts", "*.tsx", "*.jsx", "*.go", "*.rs", "*.java", "*.kt", "*.cs", "*.rb"),
    *("*.c", "*.h", "*.cc", "*.cpp", "*.swift", "*.scala", "*.html", "*.css", "*.vue", "*.lua"),
    *("*.rst", "*.pyi", "*.po", "*.sh", "*.ps1", "*.pyc", "cacert.pem"),
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
    ("glab-cli", "config.yml"),
    ("doctl", "config.yaml"),
    ("scw", "config.yaml"),
    (".fly", "config.yml"),
    (".netlify", "config.json"),
    (".stripe", "config.toml"),
    (".dbt", "profiles.yml"),
    (".bundle", "config"),
    (".nuget", "nuget.config"),
    (".hex", "hex.config"),
    (".purple", "accounts.xml"),
    (".circleci", "cli.yml"),
    (".rclone", "config"),
    (".hg", "hgrc"),
}
# What editors and people append to the name of a copy: `.env~`, `id_rsa.bak`, `.env.swp`.
_TAIL = re.compile(
    r"(?:~|[._-](?:bak|backup|old|orig|original|save|saved|copy|tmp|temp|new|prev|sw[a-p]|rej|"
    r"disabled|\d{1,14})|\s?\(\d{1,3}\)|\s-\scopy)\Z"
)

SECRET_PATTERNS = (
    *sorted(f"{name}/**" for name in _FOLDERS),
    *_FILES,
    *sorted("/".join(names) for names in _IN_FOLDER),
)
"""Names at any depth, for people to read, except the harmless ones. Copies of them count, too."""


def is_secret_path(parts: Sequence[str]) -> bool:
    """Return whether a file holds credentials by its name. `parts` are its names below a root."""
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
    """Return the name, and the names of which it may be a copy."""
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
