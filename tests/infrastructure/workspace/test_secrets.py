"""W11: what holds credentials, by name, by content and behind other names, and what does not."""

import threading
from pathlib import Path

import pytest

from kode_sidecar.core.text.secret_text import MAX_PLACES, SecretMask, find_secret
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS, Document
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.support.files import write

SECRET_NAMES = """
    .env .env~ .env-prod .env_prod .env.local .env.bak .env.1 .env.swp .env.old .env.save #.env#
    .#.env env .envrc prod.env .flaskenv .dev.vars id_rsa id_rsa.bak .id_rsa.swp id_rsa~
    id_ed25519.old deploy_rsa deploy_ed25519 kubeconfig kubeconfig.yaml prod.kubeconfig
    .kube/config .yarnrc.yml .npmrc .npmrc.bak .netrc .pypirc .git-credentials .pgpass .my.cnf
    .htpasswd .dockercfg .docker/config.json .docker/config.json.bak .vault-token .s3cfg .boto
    rclone.conf .terraformrc prod.tfvars terraform.tfstate terraform.tfstate.backup credentials
    credentials.json credentials.yml aws-credentials.json secrets.yaml secrets.json secret.txt
    app-secrets.yaml token.json auth.json .authinfo master.key server.pem server.pem.old a.p8
    vpn.ovpn store.jks .aws/config .ssh/known_hosts .gnupg/x .cargo/credentials.toml
    .m2/settings.xml gh/hosts.yml .bash_history .psql_history google-services.json
    client_secret_1.json wp-config.php .kube/cache/x .cloudflared/tunnel.json .chef/knife.cfg
    .pulumi/x .terraform.d/x store.pkcs12 store.bks store.jceks a.pvk host.keytab a.ccache my.wallet
    login.keychain login.keychain-db site.publishsettings private_key.txt tls-private-key.der
    privkey1.txt private.asc secring.pgp deploy-key.json gcp_key.json x-firebase-adminsdk-1.json
    alice_accessKeys.csv rootkey.csv azureProfile.json accessTokens.json .passwd-s3fs x.tfrc.json
    .vault-password .vault_password vault.yml admin.conf kubelet.conf wg0.conf office.rdp
    krb5.keytab shadow master.passwd smbpasswd .smbcredentials sasl_passwd site.htpasswd .msmtprc
    .offlineimaprc .fetchmailrc .gitcookies .hgrc .hg/hgrc sftp-config.json .ftpconfig
    recentservers.xml WinSCP.ini pip.conf pip.ini settings-security.xml .sentryclirc .databrickscfg
    ngrok.yml .pg_service.conf .mylogin.cnf LocalSettings.php config.inc.php keystore.properties
    key.properties keystore.json wallet.dat UTC--2020 logins.json key4.db cookies.sqlite cookies.txt
    token.txt gh.token access_token refresh_token.txt api_key.txt apikey password.txt passwords.csv
    db.password prod-secrets.toml app_secrets.json db_secret unattend.xml fish_history
    ConsoleHost_history.txt .sqlite_history glab-cli/config.yml doctl/config.yaml
    .stripe/config.toml .dbt/profiles.yml .nuget/NuGet.Config .circleci/cli.yml .purple/accounts.xml
""".split()  # noqa: SIM905
HARMLESS_NAMES = """
    .env.example .env.sample env.ts environment.py secrets.py token.py credentials.go auth.ts
    id_rsa.pub keys.py envoy.yaml tokens.json keyboard.json secret_santa.md main.tf notes.bak
    package.json .ssh/id_rsa.pub README.md~ a.orig password.html password_reset.py secrets.rst
    cacert.pem tokenizer.json token_count.txt keys.json config.yml hosts.yml vault.py
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_that_hold_credentials(name: str) -> None:
    assert is_secret_path(("app", *name.split("/")))
    assert is_secret_path(tuple(part.upper() for part in name.split("/")))


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_path(tuple(name.split("/")))


# Put together here, so that no scanner takes this file for a leak.
LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 8
HEX = "0123456789abcdef" * 8
SECRETS = {
    "private key": "-----BEGIN " + "EC PRIVATE KEY-----\n" + LETTERS[:64],
    "PGP key": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + LETTERS[:64],
    "OpenVPN": "-----BEGIN OpenVPN" + " Static key V1-----\n" + HEX[:32],
    "age": "AGE-SECRET" + "-KEY-1" + LETTERS[:58].upper(),
    "AWS id": "AKIA" + "Q3EGRTLK7MZX2B5N",
    "AWS secret": "aws_secret_access_key = " + LETTERS[:40],
    "AWS variable": "export AWS_SECRET_ACCESS_KEY='" + LETTERS[:40] + "'",
    "OpenAI": "sk-" + "proj-" + LETTERS[:48],
    "Moonshot": "sk-" + LETTERS[:48],
    "GitHub": "ghp_" + LETTERS[:36],
    "GitHub fine": "github_pat_" + LETTERS[:30],
    "GitLab": "glpat-" + LETTERS[:20],
    "npm": "npm_" + LETTERS[:36],
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + LETTERS[:60],
    "Docker": "dckr_pat_" + LETTERS[:27],
    "Slack": "xoxb-" + "123456789012-" + LETTERS[:24],
    "Slack hook": "https://hooks.slack.com/" + "services/T0A1B2C3D/B0A1B2C3D/" + LETTERS[:24],
    "Stripe": "sk_live_" + LETTERS[:24],
    "Google": "AIza" + LETTERS[:35],
    "Google secret": "GOCSPX-" + LETTERS[:28],
    "JWT": "eyJ" + LETTERS[:20] + ".eyJ" + LETTERS[:30] + "." + LETTERS[:43],
    "Aliyun": "LTAI" + LETTERS[:20],
    "Tencent": "AKID" + LETTERS[:32],
    "Azure": "AccountKey=" + LETTERS[:86] + "==",
    "SendGrid": "SG." + LETTERS[:22] + "." + LETTERS[:43],
    "DigitalOcean": "dop_v1_" + HEX[:64],
    "Hugging Face": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "Databricks": "dapi" + HEX[:32],
    "Vault": "hvs." + LETTERS[:30],
    "Postgres": "postgres://app:" + "hunter2hunter@db.internal:5432/app",
    "address": "https://bot:" + "q8wz77fkq1@git.company.io/x.git",
}


def letters(count: int) -> str:
    return (LETTERS * 8)[:count]


UUID = "01234567-89ab-4cde-8f01-23456789abcd"
UPPER = "A1B2C3D4E5F6G7H8J9K0L1M2N3P4Q5R6S7T8U9V0W1X2Y3Z4" * 3
SECRETS |= {
    "SSH2": "---- BEGIN SSH2 ENCRYPTED" + " PRIVATE KEY ----\n" + letters(70),
    "PuTTY": "PuTTY-User-Key-File-" + "3: ssh-ed25519\nEncryption: none\n" + letters(64),
    "WireGuard": "PrivateKey" + " = " + letters(42) + "A=",
    "bare key": "MC4CAQAwBQYDK2Vw" + "BCIEI" + letters(43),
    "AWS session": "ASIA" + "Q3EGRTLK7MZX2B5N",
    "AWS context": "ABIA" + "Q3EGRTLK7MZX2B5N",
    "Bedrock": "ABSK" + letters(120),
    "AWS camel": "secretAccessKey" + ": '" + letters(40) + "'",
    "Anthropic": "sk-" + "ant-api03-" + letters(93),
    "OpenRouter": "sk-" + "or-v1-" + HEX[:64],
    "Langfuse": "sk-" + "lf-" + UUID,
    "ElevenLabs": "sk_" + HEX[:48],
    "Groq": "gsk_" + letters(52),
    "xAI": "xai-" + letters(80),
    "Perplexity": "pplx-" + letters(48),
    "Replicate": "r8_" + letters(37),
    "NVIDIA": "nvapi-" + letters(64),
    "Tavily": "tvly-" + letters(32),
    "Pinecone": "pcsk_" + "a1B2c3_" + letters(63),
    "LangSmith": "lsv2_" + "pt_" + HEX[:32] + "_" + HEX[:10],
    "Jina": "jina_" + HEX[:32] + letters(28),
    "GitHub app": "ghs_" + letters(36),
    "GitLab runner": "glrt-" + letters(20),
    "GitLab deploy": "gldt-" + letters(20),
    "GitLab trigger": "glptt-" + HEX[:40],
    "GitLab old": "GR1348941" + letters(20),
    "Atlassian": "ATATT3" + letters(180),
    "Bitbucket": "ATBB" + letters(32),
    "RubyGems": "rubygems_" + HEX[:48],
    "NuGet": "oy2" + letters(43).lower(),
    "Clojars": "CLOJARS_" + letters(60).lower(),
    "Artifactory": "AKCp" + letters(69),
    "Docker org": "dckr_" + "oat_" + letters(32),
    "Slack app": "xapp-" + "1-A0A1B2C3D4-1234567890-" + HEX[:64],
    "Teams hook": "https://x.webhook.office.com/webhookb2/"
    + UUID
    + "@"
    + UUID
    + "/IncomingWebhook/",
    "Discord hook": "https://discord.com/api/webhooks/" + "123456789012345678/" + letters(68),
    "DingTalk": "https://oapi.dingtalk.com/robot/send?access_token=" + HEX[:64],
    "WeCom": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=" + UUID,
    "Feishu": "https://open.feishu.cn/open-apis/bot/v2/hook/" + UUID,
    "Telegram": "1234567890" + ":AA" + letters(33),
    "Stripe restricted": "rk_live_" + letters(24),
    "Stripe hook": "whsec_" + letters(32),
    "Google OAuth": "ya29." + letters(60),
    "Firebase": "AAAAabcdefg" + ":APA91b" + letters(134),
    "Volcengine": "AKLT" + letters(44),
    "Baidu": "bce-v3/" + "ALTAK-" + letters(22) + "/" + HEX[:40],
    "Yandex": "AQVN" + letters(36),
    "Azure shared": "SharedAccessKey" + "=" + letters(43) + "=",
    "Azure signature": "?sv=2022-11-02&sig=" + letters(43) + "%3D",
    "Azure secret": "abc8" + "Q~" + letters(34),
    "Azure AI": letters(52) + "JQQJ99" + letters(26),
    "Brevo": "xkeysib-" + HEX[:64] + "-" + letters(16),
    "Mailchimp": HEX[:32] + "-us" + "12",
    "Mailgun": "key-" + HEX[:32],
    "DigitalOcean OAuth": "doo_v1_" + HEX[:64],
    "Shopify": "shpat_" + HEX[:32],
    "Square": "sq0atp-" + letters(22),
    "Vault batch": "hvb." + letters(140),
    "Terraform": letters(14) + ".atlasv1." + letters(67),
    "Pulumi": "pul-" + HEX[:40],
    "Doppler": "dp.pt." + letters(43),
    "Dynatrace": "dt0c01." + UPPER[:24] + "." + UPPER[:64],
    "Grafana": "glsa_" + letters(32) + "_" + HEX[:8],
    "Grafana cloud": "glc_" + letters(80),
    "New Relic": "NRAK-" + UPPER[:27],
    "Postman": "PMAK-" + HEX[:24] + "-" + HEX[:34],
    "Sentry": "sntryu_" + HEX[:64],
    "Sourcegraph": "sgp_" + HEX[:40],
    "SonarQube": "squ_" + HEX[:40],
    "Supabase": "sbp_" + HEX[:40],
    "PlanetScale": "pscale_" + "tkn_" + letters(43),
    "Tailscale": "tskey-" + "auth-" + letters(32),
    "Figma": "figd_" + letters(40),
    "Fly": "fo1_" + letters(43),
    "Netlify": "nfp_" + letters(36),
    "Heroku": "HRKU-" + letters(60),
    "HubSpot": "pat-" + "na1-" + UUID,
    "Mapbox": "sk.eyJ" + letters(60) + "." + letters(22),
    "Linear": "lin_api_" + letters(40),
    "Notion": "ntn_" + "12345678901" + letters(35),
    "Contentful": "CFPAT-" + letters(43),
    "CircleCI": "CCIPAT_" + letters(22) + "_" + HEX[:40],
    "Buildkite": "bkua_" + HEX[:40],
    "Cloudflare": "v1.0-" + HEX[:24] + "-" + (HEX * 2)[:146],
    "1Password": "ops_eyJ" + letters(250),
    "Facebook": "EAAC" + letters(120),
    "Twilio": "SK" + HEX[:32],
}


def test_the_tables_are_as_long_as_they_say() -> None:
    assert len(SECRET_NAMES) >= 118
    assert len(SECRETS) >= 68


@pytest.mark.parametrize("kind", SECRETS)
def test_contents_that_are_credentials(kind: str) -> None:
    text = f"first line\nvalue: {SECRETS[kind]}\nlast line\n"
    assert find_secret(text)
    assert find_secret(SecretMask().labels(text)) is None
    stars = SecretMask().stars(text)
    assert len(stars) == len(text)
    assert stars.startswith("first line")
    assert find_secret(stars) is None


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:password@localhost/db",
        "postgres://postgres:postgres@127.0.0.1/db",
        "redis://user:${REDIS_PASSWORD}@cache:6379",
        "https://example.com:8080/a@b",
        "mask-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "eyJhbGciOiJIUzI1NiJ9 is the head of a token",
        "-----BEGIN CERTIFICATE-----\n" + LETTERS[:64],
    ],
)
def test_ordinary_text_is_not(text: str) -> None:
    assert find_secret(text) is None


@pytest.mark.parametrize(
    "piece", ["-----BEGIN RSA PRIVATE KEY-----\n", "sk-", "://", "eyJ.", "xox", "AKIA "]
)
def test_a_text_made_of_beginnings_counts_as_one(piece: str) -> None:
    assert find_secret(piece * 100) is None
    assert find_secret(piece * (MAX_PLACES + 2))


def test_an_open_secret_is_not_read_by_another_name(tmp_path: Path) -> None:
    write(tmp_path, {".env": "MODE=dev\n"})
    (tmp_path / "notes.txt").hardlink_to(tmp_path / ".env")
    space = Workspace([tmp_path], "utf-16")
    space.documents.open(path_to_uri(tmp_path / ".env"), "text", 1, "MODE=dev\n")
    with pytest.raises(KodeError) as caught:
        space.document("notes.txt", purpose="read")
    assert caught.value.code == "Denied"
    assert "MODE" not in caught.value.message


async def test_an_open_text_is_taken_before_the_user_types_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that put the text together would store it over a newer one."""
    readers: set[int] = set()
    text_of = Document.text.fget
    assert text_of is not None

    def text(document: Document) -> str:
        readers.add(threading.get_ident())
        return text_of(document)

    monkeypatch.setattr(Document, "text", property(text))
    workspace = Workspace([tmp_path], "utf-16")
    uri = path_to_uri(tmp_path / "large.txt")
    workspace.documents.open(uri, "text", 1, "word\n" * LARGE_CHARS)
    document = workspace.documents.get(uri)
    assert document is not None
    await workspace.look_through(document)
    assert readers == {threading.get_ident()}
