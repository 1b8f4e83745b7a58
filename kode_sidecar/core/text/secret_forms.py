"""The forms that issuers give their credentials, as a table (W11).

Literals are few and rare, because each costs a search of the whole text. Test keys of handbooks,
public keys and ids are left out.
"""

import re

BEGIN = "-----BEGIN "
_BODY = r"(?:[A-Za-z0-9+/=\s'`,;#>|*.:()_\\]++|-(?!----END ))"
_END = r"(?:-----END [A-Z0-9 ]{0,60}-----)?"
PRIVATE_KEY = rf"(?:[A-Z0-9]{{1,12}} ){{0,3}}?PRIVATE KEY(?: BLOCK)?-----{_BODY}*+{_END}"
"""From its first line to its last; without a last line up to what cannot belong to it."""
_HAS_BODY = r"(?:[A-Za-z0-9+/=]{0,39}+[^A-Za-z0-9+/=]){0,60}+[A-Za-z0-9+/=]{40}"
_KEY_BLOCK = PRIVATE_KEY.replace("-----", rf"-----(?={_HAS_BODY})", 1)

_BARE = (
    r"[A-Za-z0-9+/]{30,}+(?:[\s\\]{1,20}[A-Za-z0-9+/]{20,}+)*+"
    r"(?:[\s\\]{1,20}[A-Za-z0-9+/]{1,76}+(?==|\s|\Z))?={0,2}"
)

# A user's name, a password that is none of those in handbooks, and a host that is not this machine.
_LOGIN = (
    r"[^\s:/@'\"<>{}$%*]{1,64}:"
    r"(?!(?:pass|passwd|password|pw|pwd|secret|user\w{0,8}|root|admin|test|example|guest|change_?me|"
    r"my\w{0,20}|your\w{0,20}|x+|\.+)@)([^\s:/@'\"<>{}$%*]{4,128})@"
    r"(?!localhost|127\.|0\.0\.0\.0|\[::1|example|(?:host(?:name)?|db|server)(?![\w.-]))[\w.-]{2,255}"
)
_ASSIGNED = r"['\"]?\s{0,3}(?:=>|=|:)\s{0,3}['\"]?"
_AWS_SECRET = rf"{_ASSIGNED}(?!\S{{0,40}}EXAMPLE)([A-Za-z0-9/+]{{40}})(?![\w/+])"
_HEX8 = r"[0-9a-f]{8}"
_UUID = rf"{_HEX8}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}\b"
_MIXED = r"(?=[A-Za-z_-]{0,80}\d)"

FORMS = (
    (BEGIN, _KEY_BLOCK, "a private key"),
    (BEGIN, rf"OpenVPN Static key V1-----\s+[0-9a-f]{{32}}{_BODY}*+{_END}", "a private key"),
    ("---- BEGIN SSH2 ENCRYPTED", r" PRIVATE KEY ----[A-Za-z0-9+/=\s:\"',.()-]*+", "a private key"),
    ("PuTTY-User-Key-File-", r"\d: [^\n]{1,99}\r?\n[A-Za-z0-9+/=\s:@._-]*+", "a private key"),
    *(
        (first, _BARE, "a private key")
        for first in ("MC4CAQAwBQYDK2Vw", "b3BlbnNzaC1rZXktdjEA", "MIGHAgEAMBMGByqGSM49")
    ),
    *(
        (f"MII{size}IBA", _BARE, "a private key")
        for size in ("EpA", "EpQ", "Eow", "JKQ", "JKA", "EvQ", "EvA", "JQg")
    ),
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{58}\b", "a private key"),
    ("PrivateKey = ", r"([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)", "a WireGuard key"),
    *(
        (f"{kind}", r"(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b", "an AWS access key")
        for kind in ("AKIA", "ASIA", "ABIA", "ACCA")
    ),
    ("ABSK", r"[A-Za-z0-9+/]{109,269}={0,2}", "an AWS Bedrock key"),
    ("secret_access_key", _AWS_SECRET, "an AWS secret"),
    ("SECRET_ACCESS_KEY", _AWS_SECRET, "an AWS secret"),
    ("secretAccessKey", _AWS_SECRET, "an AWS secret"),
    ("sk-", r"(?:ant|proj|svcacct|admin|or|lf)-[\w-]{20,255}", "an API key"),
    ("sk-", rf"{_MIXED}[A-Za-z0-9]{{24,200}}(?![\w-])", "an API key"),
    ("sk_", r"[0-9a-f]{48}\b", "an API key"),
    ("gsk_", r"[A-Za-z0-9]{52}\b", "an API key"),
    ("xai-", r"[A-Za-z0-9]{70,90}\b", "an API key"),
    ("pplx-", r"[A-Za-z0-9]{48,56}\b", "an API key"),
    ("r8_", r"[A-Za-z0-9]{37}\b", "an API key"),
    ("nvapi-", r"[\w-]{60,70}", "an API key"),
    ("tvly-", rf"{_MIXED}[\w-]{{24,64}}", "an API key"),
    ("pcsk_", r"[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,70}", "an API key"),
    ("lsv2_", r"[ps][tk]_[0-9a-f]{32}_[0-9a-f]{10}", "an API key"),
    ("jina_", r"[0-9a-f]{32}[\w-]{20,40}", "an API key"),
    *((f"gh{kind}_", r"[A-Za-z0-9]{36,255}\b", "a GitHub token") for kind in "opsur"),
    ("github_pat_", r"\w{22,255}", "a GitHub token"),
    *(
        (f"{kind}-", r"[\w-]{20,255}(?:\.\w{2}\.\w{7,9})?", "a GitLab token")
        for kind in ("glpat", "glrt", "gldt", "glft", "glptt", "glsoat", "glagent", "gloas")
    ),
    ("GR1348941", r"[\w-]{20}", "a GitLab token"),
    ("ATATT3", r"[\w=-]{100,300}", "an Atlassian token"),
    ("ATBB", r"[A-Za-z0-9]{28,40}\b", "a Bitbucket token"),
    ("npm_", r"[A-Za-z0-9]{36}\b", "an npm token"),
    ("pypi-AgE", r"[\w-]{50,1000}", "a PyPI token"),
    ("rubygems_", r"[0-9a-f]{48}\b", "a RubyGems key"),
    ("oy2", r"[a-z0-9]{43}\b", "a NuGet key"),
    ("CLOJARS_", r"[a-z0-9]{60}\b", "a Clojars token"),
    ("AKCp", r"[A-Za-z0-9]{60,75}\b", "an Artifactory key"),
    ("dckr_", r"[po]at_[\w-]{20,60}", "a Docker token"),
    ("xox", r"[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{20,255}", "a Slack token"),
    ("xapp-", r"\d-[A-Z0-9]{8,20}-\d+-[a-z0-9]{20,100}", "a Slack token"),
    ("hooks.slack.com/", r"\w{8,9}/(T[A-Z0-9]{6,}/\w{6,}/\w{16,})", "a webhook"),
    ("webhook.office.com/webhookb2/", r"([\w@/-]{60,255})", "a webhook"),
    ("/api/webhooks/", r"(\d{17,20}/[\w-]{60,80})", "a webhook"),
    ("oapi.dingtalk.com/robot/send?access_token=", r"([0-9a-f]{64})", "a webhook"),
    ("qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", rf"({_UUID})", "a webhook"),
    ("/open-apis/bot/v2/hook/", rf"({_UUID})", "a webhook"),
    (":AA", r"(?<=\d{8}:AA)[\w-]{32,33}(?![\w-])", "a Telegram token"),
    *(
        (f"{kind}k_{mode}_", r"[A-Za-z0-9]{16,255}", "a Stripe key")
        for kind in "sr"
        for mode in ("live", "prod")
    ),
    ("whsec_", r"(?=[A-Za-z]{0,40}\d)[A-Za-z0-9+/]{32,64}={0,2}", "a Stripe secret"),
    ("AIza", r"[\w-]{35}(?![\w-])", "a Google API key"),
    ("GOCSPX-", r"[\w-]{28}(?![\w-])", "a Google client secret"),
    ("ya29.", r"[\w-]{40,300}", "a Google token"),
    (":APA91b", r"[\w-]{100,200}", "a Firebase key"),
    ("eyJ", r"[\w-]{15,4000}\.eyJ[\w-]{15,8000}\.[\w-]{20,2000}", "a JSON web token"),
    ("LTAI", r"(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{12,24}(?![\w-])", "an Aliyun access key"),
    ("AKID", r"(?=[A-Za-z]{0,36}\d)[A-Za-z0-9]{32,36}(?![\w-])", "a Tencent Cloud key"),
    ("AKLT", r"(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{40,60}={0,2}(?![\w-])", "a Volcengine key"),
    ("bce-v3/ALTAK-", r"\w{16,32}/[0-9a-f]{40}", "a Baidu key"),
    ("AQVN", r"[\w-]{35,38}(?![\w-])", "a Yandex key"),
    ("AccountKey=", r"([A-Za-z0-9+/]{80,100}==)", "an Azure storage key"),
    ("SharedAccessKey=", r"([A-Za-z0-9+/]{40,60}=)", "an Azure access key"),
    ("&sig=", r"([A-Za-z0-9%+/]{43,60}(?:%3[Dd]|=))", "an Azure signature"),
    ("Q~", r"(?<=\w{3}\dQ~)[\w.~-]{31,34}(?![\w.~-])", "an Azure secret"),
    ("JQQJ99", r"(?<=[A-Za-z0-9]{32}JQQJ99)[A-Za-z0-9]{20,40}\b", "an Azure key"),
    ("SG.", r"[\w-]{20,24}\.[\w-]{39,50}", "a SendGrid key"),
    ("xkeysib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}", "a Brevo key"),
    ("-us", r"(?<=[0-9a-f]{32}-us)\d{1,2}\b", "a Mailchimp key"),
    ("key-", r"[0-9a-f]{32}\b", "a Mailgun key"),
    *((f"do{kind}_v1_", r"[0-9a-f]{64}", "a DigitalOcean token") for kind in "opr"),
    ("hf_", r"(?=[A-Z]{0,40}[a-z])(?=[a-z]{0,40}[A-Z])[A-Za-z]{34}\b", "a Hugging Face token"),
    *((f"shp{kind}_", r"[0-9a-fA-F]{32}", "a Shopify token") for kind in ("at", "ca", "pa", "ss")),
    ("sq0", r"(?:atp-[\w-]{22}|csp-[\w-]{43})", "a Square token"),
    ("dapi", r"[0-9a-f]{32}(?:-\d)?\b", "a Databricks token"),
    *((f"hv{kind}.", r"[\w-]{24,300}", "a Vault token") for kind in "sbr"),
    (".atlasv1.", r"[\w=-]{60,70}", "a Terraform token"),
    ("pul-", r"[0-9a-f]{40}\b", "a Pulumi token"),
    (
        "dp.",
        r"(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}\b",
        "a Doppler token",
    ),
    ("dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}", "a Dynatrace token"),
    ("glsa_", r"[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}", "a Grafana token"),
    ("glc_", r"[A-Za-z0-9+/]{32,400}={0,2}", "a Grafana token"),
    ("NRAK-", r"[A-Z0-9]{27}\b", "a New Relic key"),
    ("PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}", "a Postman key"),
    ("sntry", r"(?:u_[0-9a-f]{64}|s_eyJ[\w+/=.-]{80,400})", "a Sentry token"),
    ("sgp_", r"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}\b", "a Sourcegraph token"),
    *((f"sq{kind}_", r"[0-9a-f]{40}\b", "a SonarQube token") for kind in "pua"),
    ("sbp_", r"[0-9a-f]{40}\b", "a Supabase token"),
    ("sb_secret_", r"[\w-]{28,60}", "a Supabase key"),
    ("pscale_", r"(?:tkn|pw|oauth)_[\w.=-]{32,64}", "a PlanetScale secret"),
    ("tskey-", r"(?:auth|api|client|scim)-[\w-]{20,80}", "a Tailscale key"),
    ("figd_", r"[\w-]{40,60}", "a Figma token"),
    ("fo1_", r"[\w-]{43}(?![\w-])", "a Fly.io token"),
    ("fm2_", r"[\w+/=]{100,900}", "a Fly.io token"),
    ("nfp_", r"[A-Za-z0-9]{36}\b", "a Netlify token"),
    ("HRKU-", r"[\w-]{36,70}", "a Heroku key"),
    ("pat-", rf"(?:na|eu)\d-{_UUID}", "a HubSpot token"),
    ("sk.eyJ", r"[\w-]{30,400}\.[\w-]{20,60}", "a Mapbox token"),
    ("lin_api_", r"[A-Za-z0-9]{40}", "a Linear key"),
    ("ntn_", r"\d{6,}[A-Za-z0-9]{30,}", "a Notion token"),
    ("secret_", r"(?=[A-Za-z]{0,43}\d)[A-Za-z0-9]{43}\b", "a Notion token"),
    ("CFPAT-", r"[\w-]{43}(?![\w-])", "a Contentful token"),
    ("CCIP", r"(?:AT|RJ)_\w{10,30}_[0-9a-f]{40}", "a CircleCI token"),
    ("bkua_", r"[0-9a-f]{40}\b", "a Buildkite token"),
    ("v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}", "a Cloudflare key"),
    ("ops_eyJ", r"[\w+/=-]{200,2000}", "a 1Password token"),
    *((f"EAA{kind}", r"[A-Za-z0-9]{100,300}(?![\w+/=])", "a Facebook token") for kind in "MC"),
    ("shippo_live_", r"[0-9a-f]{40}\b", "a Shippo token"),
    ("FLWSECK", r"(?:_TEST)?-[0-9a-zA-Z]{12,44}-?X?\b", "a Flutterwave key"),
    ("EZAK", r"[A-Za-z0-9]{54}\b", "an EasyPost key"),
    ("PMAT-", r"[0-9A-Z]{26}\b", "a Postman token"),
    ("rdme_", r"[a-z0-9]{70}\b", "a ReadMe key"),
    ("pnu_", r"[A-Za-z0-9]{36}\b", "a Prefect key"),
    ("tfp_", r"[\w.=-]{59}", "a Typeform token"),
    ("dnkey-", r"[\w=-]{26}-[\w=-]{52}", "a Defined Networking key"),
    ("API-", r"(?=[A-Z]{0,26}\d)[A-Z0-9]{26}\b", "an Octopus key"),
    ("sdk-", _UUID, "a LaunchDarkly key"),
    ("xprv", r"[1-9A-HJ-NP-Za-km-z]{107}\b", "a wallet's key"),
    ("SK", r"[0-9a-f]{32}\b", "a Twilio key"),
    ("://", _LOGIN, "a password in an address"),
)
"""What it begins with, what must follow, what it is. A group is the secret where not all of it is.
"""
BEHIND = re.compile(r"[A-Za-z0-9_~.+/=:-]{0,64}\Z")
"""The part of a credential before a literal that is inside of it."""
INNER = frozenset({"Q~", "JQQJ99", "-us", ":AA", ":APA91b", ".atlasv1."})
_MEMBER = r"\"\s{0,3}:\s{0,3}\"((?:[^\"\\]|\\.)+)(?=\")|'\s{0,3}:\s{0,3}'([^'\n]+)(?=')"
_HEADER = r"['\"]?\s{0,3}[:=]\s{0,3}['\"]?((?:(?:basic|bearer)\s+)?[^\s\"',;\\]+)"
_NAMES = ("authorization", "apikey", "api_key", "api-key", "cookie", "password", "passwd", "secret")
NAMED = (
    ("bearer", r"[ +]([\w.~+/=-]{8,})", ""),
    ("sk-", r"[\w-]{8,}", ""),
    ("authorization", _HEADER, ""),
    *((name, _MEMBER, "") for name in _NAMES),
)
"""What a name gives away, in lower case. A file that holds these is read; what leaves is masked."""
CUT = r"(?=\x85|\xe2\x80\xa6|\.{3}|\Z)"
"""Where a text was cut off; an ellipsis reads as U+0085, which is one byte, or as its UTF-8."""
CUT_OFF = re.compile(r"[A-Za-z0-9_+/=.~-]{4,400}+" + CUT)
"""The rest of a credential that is too short for its form because the text was cut."""
