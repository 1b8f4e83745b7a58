"""OAuth for MCP servers over HTTP: found out from the server, agreed to in the user's browser.

Sources: MCP "Authorization" (2025-11-25), RFC 6749, 7591, 7636, 8414, 8707, 9728. Tokens are kept
like keys: in one file that only the user can read, never shown, never logged.
"""

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import httpx
import msgspec
from msgspec import Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.config import is_safe
from kode_sidecar.infrastructure.mcp.contracts import Json, ServerConfig, server_error
from kode_sidecar.infrastructure.mcp.kept import Kept

Visit = Callable[[str], Awaitable[str]]
"""Let the user agree at an address; returns the one that the browser was sent back to."""

_CHALLENGE = re.compile(r'(\w+)\s*=\s*(?:"([^"]*)"|([^\s,]+))')
_MOST_BYTES = 1_000_000


class Token(Struct, frozen=True, kw_only=True):
    """What an authorization server gave us for one MCP server, and who we are to it."""

    access_token: str
    refresh_token: str = ""
    scope: str = ""
    token_endpoint: str = ""
    resource: str = ""
    client: Json = {}


class TokenFile(Kept[Token]):
    """The tokens of all servers. Other processes log in and refresh, too."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, Token, durable=True)


class OAuth:
    """The log-in to one server. `visit` needs the user; without it only a kept token helps.

    `client` is what the settings say of us: `client_id` and `client_secret` where the server's
    owner registered us, `client_metadata_url` where we are described on the web.
    """

    def __init__(
        self,
        config: ServerConfig,
        tokens: TokenFile,
        visit: Visit | None,
        *,
        redirect_uri: str = "http://127.0.0.1:33418/callback",
        client: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._visit = visit
        self._redirect_uri = redirect_uri
        self._client = dict(client or {})
        self._busy = asyncio.Lock()
        self._given = ""

    def headers(self) -> dict[str, str]:
        """The headers that a kept token makes."""
        token = self._tokens.get(self._config.fingerprint)
        return {"authorization": f"Bearer {token.access_token}"} if token else {}

    async def authorize(self, headers: Mapping[str, str]) -> Mapping[str, str] | None:
        """Answer a refusal: a kept token that was not tried, a fresh one, or None.

        Raises KodeError `ToolFailed`.
        """
        async with self._busy, httpx.AsyncClient(trust_env=False, timeout=30.0) as http:
            challenge = _challenge(headers.get("www-authenticate", ""))
            kept = self._tokens.get(self._config.fingerprint)
            more = challenge.get("error") == "insufficient_scope"
            if kept is not None and kept.access_token != self._given and not more:
                self._given = kept.access_token
                return self.headers()
            try:
                token = None
                if kept is not None and kept.refresh_token and not more:
                    token = await self._refreshed(http, kept)
                token = token or await self._agreed(http, challenge, kept)
            except httpx.HTTPError as error:
                text = f"cannot be logged in to: {error or type(error).__name__}."
                raise self._failed(text) from None
            if token is None:
                return None
            self._tokens.put(self._config.fingerprint, token)
            self._given = token.access_token
            return self.headers()

    async def _refreshed(self, http: httpx.AsyncClient, kept: Token) -> Token | None:
        body = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        body["resource"] = kept.resource or self._address()
        found = await self._token(http, kept.token_endpoint, body, kept.client)
        if found is None:
            return None
        refresh = str(found.get("refresh_token") or kept.refresh_token)
        return msgspec.structs.replace(
            kept, access_token=str(found["access_token"]), refresh_token=refresh
        )

    async def _agreed(
        self, http: httpx.AsyncClient, challenge: Mapping[str, str], kept: Token | None
    ) -> Token | None:
        if self._visit is None:
            return None
        resource = await self._resource_metadata(http, challenge)
        server = await self._server_metadata(http, resource)
        client = await self._registered(http, server)
        scope = _scope(challenge, resource, server, kept)
        # Letter for letter as the server publishes it (RFC 9728): a token may name only that.
        name = str(resource.get("resource") or "") or self._address()
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        asked = {
            "response_type": "code",
            "client_id": client["client_id"],
            "redirect_uri": self._redirect_uri,
            "state": state,
            "code_challenge": _s256(verifier),
            "code_challenge_method": "S256",
            "resource": name,
            **({"scope": scope} if scope else {}),
        }
        address = server["authorization_endpoint"]
        address += ("&" if "?" in address else "?") + urlencode(asked)
        back = await self._visit(address)
        code = self._code(back, state, server)
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
            "resource": name,
        }
        found = await self._token(http, server["token_endpoint"], body, client)
        if found is None:
            raise self._failed("gave no token for the user's agreement.")
        return Token(
            access_token=str(found["access_token"]),
            refresh_token=str(found.get("refresh_token") or ""),
            scope=str(found.get("scope") or scope),
            token_endpoint=server["token_endpoint"],
            resource=name,
            client=client,
        )

    async def _resource_metadata(
        self, http: httpx.AsyncClient, challenge: Mapping[str, str]
    ) -> Json:
        """What the server says of its protection (RFC 9728); empty for servers from before it."""
        named = challenge.get("resource_metadata")
        places = [named] if named else _well_known(self._config.url, "oauth-protected-resource")
        for place in places:
            found = await _document(http, place)
            if found is None:
                continue
            resource = str(found.get("resource") or "")
            if resource and not _covers(resource, self._config.url):
                raise self._failed(f"says it is another one ({resource[:200]}): nothing is sent.")
            return found
        return {}

    async def _server_metadata(self, http: httpx.AsyncClient, resource: Json) -> Json:
        """What the authorization server says of itself (RFC 8414, or OpenID Connect)."""
        issuers: Any = resource.get("authorization_servers")
        issuer = str(issuers[0]) if issuers else _origin(self._config.url)
        places = _well_known(issuer, "oauth-authorization-server")[:1]
        places += _well_known(issuer, "openid-configuration")[:1]
        if urlsplit(issuer).path.strip("/"):
            places.append(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        for place in places:
            found = await _document(http, place)
            if found and "authorization_endpoint" in found and "token_endpoint" in found:
                if resource and str(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
                    raise self._failed("has a log-in server that calls itself by another name.")
                methods = found.get("code_challenge_methods_supported")
                if methods is not None and "S256" not in methods:
                    raise self._failed("has a log-in without S256, which is not safe.")
                return found
        if resource:
            raise self._failed("names a log-in server that does not describe itself.")
        # 2025-03-26: without any metadata the endpoints are these.
        names = {"authorization": "authorize", "token": "token", "registration": "register"}
        return {f"{key}_endpoint": f"{issuer}/{path}" for key, path in names.items()}

    async def _registered(self, http: httpx.AsyncClient, server: Json) -> Json:
        """Who we are to the authorization server."""
        supported: Sequence[str] = server.get("token_endpoint_auth_methods_supported") or (
            "client_secret_basic",
        )
        if "client_id" in self._client:
            method = _method(supported) if self._client.get("client_secret") else "none"
            return {**self._client, "token_endpoint_auth_method": method}
        described = self._client.get("client_metadata_url")
        if described and server.get("client_id_metadata_document_supported"):
            return {"client_id": described, "token_endpoint_auth_method": "none"}
        endpoint = server.get("registration_endpoint")
        if not endpoint:
            raise self._failed("takes only registered clients: set its `client_id`.")
        asked = {
            "client_name": "kode-sidecar",
            "redirect_uris": [self._redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none" if "none" in supported else _method(supported),
            "application_type": "native",
        }
        response = await http.post(str(endpoint), json=asked)
        found = _json(response)
        if response.status_code not in (200, 201) or "client_id" not in found:
            raise self._failed(f"refused to register us (HTTP {response.status_code}).")
        method = found.get("token_endpoint_auth_method") or asked["token_endpoint_auth_method"]
        return {
            "client_id": str(found["client_id"]),
            "client_secret": str(found.get("client_secret") or ""),
            "token_endpoint_auth_method": method,
        }

    async def _token(
        self, http: httpx.AsyncClient, endpoint: str, body: dict[str, str], client: Json
    ) -> Json | None:
        headers = {"accept": "application/json"}
        name, secret = str(client["client_id"]), str(client.get("client_secret") or "")
        if client.get("token_endpoint_auth_method") == "client_secret_basic" and secret:
            pair = f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            body = {**body, "client_id": name, **({"client_secret": secret} if secret else {})}
        response = await http.post(endpoint, data=body, headers=headers)
        found = _json(response)
        return found if response.status_code == 200 and "access_token" in found else None

    def _code(self, back: str, state: str, server: Json) -> str:
        """The code in the address the browser came back with (RFC 9207: and who gave it)."""
        given = parse_qs(urlsplit(back).query)
        issuer = given.get("iss")
        promised = server.get("authorization_response_iss_parameter_supported") is True
        if (issuer is None and promised) or (issuer and issuer != [server.get("issuer")]):
            raise self._failed("was answered by another log-in server than was asked.")
        if given.get("state") != [state]:
            raise self._failed("was answered by somebody else: the `state` differs.")
        if "code" not in given:
            reason = given.get("error", ["no code was given"])[0]
            raise self._failed(f"was not agreed to: {reason[:200]}.")
        return given["code"][0]

    def _address(self) -> str:
        """The name of a server that publishes none (RFC 8707): its address without a fragment."""
        parts = urlsplit(self._config.url)
        path = "" if parts.path == "/" else parts.path
        return urlunsplit((parts.scheme, parts.netloc.lower(), path, parts.query, ""))

    def _failed(self, text: str) -> KodeError:
        return server_error(self._config.name, text, "unauthorized")


def _challenge(header: str) -> dict[str, str]:
    """The parameters of a `WWW-Authenticate: Bearer …`."""
    _, _, parameters = header.partition(" ")
    return {name.lower(): quoted or plain for name, quoted, plain in _CHALLENGE.findall(parameters)}


def _scope(challenge: Mapping[str, str], resource: Json, server: Json, kept: Token | None) -> str:
    """What to ask for: what the refusal names, else all that the server knows, else nothing."""
    wanted = challenge.get("scope", "").split()
    if kept is not None and challenge.get("error") == "insufficient_scope":
        wanted = [*kept.scope.split(), *wanted]
    if not wanted:
        known: Any = resource.get("scopes_supported") or ()
        wanted = [str(scope) for scope in known]
    offered: Any = server.get("scopes_supported") or ()
    if "offline_access" in offered:
        wanted.append("offline_access")
    return " ".join(dict.fromkeys(wanted))


def _method(supported: Sequence[str]) -> str:
    known = ("client_secret_basic", "client_secret_post", "none")
    return next((method for method in known if method in supported), "client_secret_post")


def _s256(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _well_known(url: str, name: str) -> list[str]:
    """Where a document of that name is: below the origin with the path behind it, then without."""
    path = urlsplit(url).path.rstrip("/")
    base = f"{_origin(url)}/.well-known/{name}"
    return [base + path, base] if path else [base]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _covers(resource: str, url: str) -> bool:
    """Whether a protected resource is this server, or all of its origin above it."""
    same = _origin(resource).lower() == _origin(url).lower()
    above, path = urlsplit(resource).path.rstrip("/"), urlsplit(url).path.rstrip("/")
    return same and (path == above or path.startswith(f"{above}/"))


async def _document(http: httpx.AsyncClient, place: str) -> Json | None:
    if not is_safe(place):
        return None
    response = await http.get(place, headers={"accept": "application/json"})
    return _json(response) if response.status_code == 200 else None


def _json(response: httpx.Response) -> Json:
    if len(response.content) > _MOST_BYTES:
        return {}
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(response.content, type=dict[str, Any])
    return {}
