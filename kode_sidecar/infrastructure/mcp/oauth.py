"""OAuth for MCP servers over HTTP: discovered from the server, agreed to in the user's browser.

Sources: MCP "Authorization" (2025-11-25), RFC 6749, 7591, 7636, 8414, 8707, 9728. Tokens are stored
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
from typing import NotRequired, TypedDict, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.foreign import ForeignHttp
from kode_sidecar.infrastructure.http.response import NetworkError
from kode_sidecar.infrastructure.mcp.contracts import Json, ServerConfig, server_error
from kode_sidecar.infrastructure.mcp.server_store import ServerStore

Visit = Callable[[str], Awaitable[str]]
"""Opens an address for the user to agree; returns the address of the browser's redirect back."""

_CHALLENGE = re.compile(r'(\w+)\s*=\s*(?:"([^"]*)"|([^\s,]+))')
_JSON = {"accept": "application/json"}


class Resource(TypedDict, total=False):
    """The protected resource metadata of a server (RFC 9728)."""

    resource: str | None
    authorization_servers: list[str] | None
    scopes_supported: list[str] | None


class LoginServer(TypedDict, total=False):
    """The metadata of an authorization server (RFC 8414)."""

    issuer: str | None
    authorization_endpoint: str | None
    token_endpoint: str | None
    registration_endpoint: str | None
    code_challenge_methods_supported: list[str] | None
    scopes_supported: list[str] | None
    token_endpoint_auth_methods_supported: list[str] | None
    client_id_metadata_document_supported: bool | None
    authorization_response_iss_parameter_supported: bool | None


class Registered(TypedDict):
    """Our registration at an authorization server (RFC 7591)."""

    client_id: str
    client_secret: NotRequired[str | None]
    token_endpoint_auth_method: NotRequired[str | None]


class Granted(TypedDict):
    """A token response (RFC 6749)."""

    access_token: str
    refresh_token: NotRequired[str | None]
    scope: NotRequired[str | None]


Words = TypeVar("Words", Resource, LoginServer, Registered, Granted)


class Token(Struct, frozen=True, kw_only=True):
    """The token that we hold for one MCP server, and the `client` we are registered as."""

    access_token: str
    refresh_token: str = ""
    scope: str = ""
    token_endpoint: str = ""
    resource: str = ""
    client: Json = {}


class TokenFile(ServerStore[Token]):
    """Stores the tokens of all servers. Other processes log in and refresh, too."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, Token, durable=True)


class OAuth:
    """Logs in to one server. Without `visit`, which needs the user, only a stored token works.

    `client` comes from the settings: `client_id` and `client_secret` if the server's owner
    registered us, `client_metadata_url` if a web page describes us.
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
        self._http = ForeignHttp({urlsplit(config.url).netloc, *config.login_hosts}, "login_hosts")
        self._busy = asyncio.Lock()
        self._given = ""

    def headers(self) -> dict[str, str]:
        """Return the headers for the stored token, if there is one."""
        token = self._tokens.get(self._config.fingerprint)
        return {"authorization": f"Bearer {token.access_token}"} if token else {}

    async def authorize(self, headers: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return headers to retry a refused message with, or None.

        Tries a stored token that was not tried yet, then a refresh, then the user's agreement.
        Raises KodeError `ToolFailed`.
        """
        async with self._busy:
            challenge = _challenge(headers.get("www-authenticate", ""))
            kept = self._tokens.get(self._config.fingerprint)
            more = challenge.get("error") == "insufficient_scope"
            if kept is not None and kept.access_token != self._given and not more:
                self._given = kept.access_token
                return self.headers()
            try:
                token = None
                if kept is not None and kept.refresh_token and not more:
                    token = await self._refreshed(kept)
                token = token or await self._agreed(challenge, kept)
            except NetworkError as error:
                raise self._failed(f"cannot be logged in to: {error.reason}.") from None
            except ValueError:
                raise self._failed("names an address in its log-in that is none.") from None
            if token is None:
                return None
            self._tokens.put(self._config.fingerprint, token)
            self._given = token.access_token
            return self.headers()

    async def _refreshed(self, kept: Token) -> Token | None:
        body = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        body["resource"] = kept.resource or self._address()
        found = await self._token(kept.token_endpoint, body, kept.client)
        if found is None:
            return None
        refresh = found.get("refresh_token") or kept.refresh_token
        return msgspec.structs.replace(
            kept, access_token=found["access_token"], refresh_token=refresh
        )

    async def _agreed(self, challenge: Mapping[str, str], kept: Token | None) -> Token | None:
        if self._visit is None:
            return None
        resource = await self._resource_metadata(challenge)
        server = await self._server_metadata(resource)
        client = await self._registered(server)
        scope = _scope(challenge, resource, server, kept)
        # Exactly as the server publishes it (RFC 9728): a token may be bound to that spelling.
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
        address = str(server.get("authorization_endpoint"))
        address += ("&" if "?" in address else "?") + urlencode(asked)
        token_endpoint = str(server.get("token_endpoint"))
        for place in (address, token_endpoint):  # before the user is asked for anything
            await self._http.check(place)
        back = await self._visit(address)
        code = self._code(back, state, server)
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
            "resource": name,
        }
        found = await self._token(token_endpoint, body, client)
        if found is None:
            raise self._failed("gave no token for the user's agreement.")
        return Token(
            access_token=found["access_token"],
            refresh_token=found.get("refresh_token") or "",
            scope=found.get("scope") or scope,
            token_endpoint=token_endpoint,
            resource=name,
            client=client,
        )

    async def _resource_metadata(self, challenge: Mapping[str, str]) -> Resource:
        """Fetch the protected resource metadata (RFC 9728); empty if the server has none."""
        named = challenge.get("resource_metadata")
        places = [named] if named else _well_known(self._config.url, "oauth-protected-resource")
        for place in places:
            found = await self._document(place, Resource)
            if found is None:
                continue
            resource = str(found.get("resource") or "")
            if resource and not _covers(resource, self._config.url):
                raise self._failed(
                    f"says it is another one ({one_line(resource)[:200]}): nothing is sent."
                )
            return found
        return {}

    async def _server_metadata(self, resource: Resource) -> LoginServer:
        """Fetch the authorization server's metadata (RFC 8414, or OpenID Connect)."""
        issuers = resource.get("authorization_servers")
        issuer = issuers[0] if issuers else _origin(self._config.url)
        places = _well_known(issuer, "oauth-authorization-server")[:1]
        places += _well_known(issuer, "openid-configuration")[:1]
        if urlsplit(issuer).path.strip("/"):
            places.append(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        for place in places:
            found = await self._document(place, LoginServer)
            if found and found.get("authorization_endpoint") and found.get("token_endpoint"):
                if resource and str(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
                    raise self._failed("has a log-in server that calls itself by another name.")
                methods = found.get("code_challenge_methods_supported")
                if methods is not None and "S256" not in methods:
                    raise self._failed("has a log-in without S256, which is not safe.")
                return found
        if resource:
            raise self._failed("names a log-in server that does not describe itself.")
        # The default endpoints of MCP 2025-03-26 for servers without metadata.
        return {
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
        }

    async def _registered(self, server: LoginServer) -> Json:
        """Return our client id at the authorization server; registers us if there is none."""
        supported: Sequence[str] = server.get("token_endpoint_auth_methods_supported") or (
            "client_secret_basic",
        )
        if "client_id" in self._client:
            method = _method(supported) if self._client.get("client_secret") else "none"
            return {**self._client, "token_endpoint_auth_method": method}
        described = self._client.get("client_metadata_url")
        reads_document = server.get("client_id_metadata_document_supported")
        if described and reads_document:
            return {"client_id": described, "token_endpoint_auth_method": "none"}
        endpoint = server.get("registration_endpoint")
        if not endpoint:
            wanted = "`client_id` or `client_metadata_url`" if reads_document else "`client_id`"
            raise self._failed(f"takes only registered clients: set its {wanted}.")
        asked = {
            "client_name": "kode-sidecar",
            "redirect_uris": [self._redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none" if "none" in supported else _method(supported),
            "application_type": "native",
        }
        sent = msgspec.json.encode(asked)
        headers = {**_JSON, "content-type": "application/json"}
        status, data = await self._http.ask("POST", endpoint, headers, sent)
        found = _decoded(data, Registered)
        if status not in (200, 201) or found is None:
            raise self._failed(f"refused to register us (HTTP {status}).")
        method = found.get("token_endpoint_auth_method") or asked["token_endpoint_auth_method"]
        return {
            "client_id": found["client_id"],
            "client_secret": found.get("client_secret") or "",
            "token_endpoint_auth_method": method,
        }

    async def _token(self, endpoint: str, body: dict[str, str], client: Json) -> Granted | None:
        headers = {**_JSON, "content-type": "application/x-www-form-urlencoded"}
        name, secret = str(client["client_id"]), str(client.get("client_secret") or "")
        if client.get("token_endpoint_auth_method") == "client_secret_basic" and secret:
            pair = f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            body = {**body, "client_id": name, **({"client_secret": secret} if secret else {})}
        status, data = await self._http.ask("POST", endpoint, headers, urlencode(body).encode())
        found = _decoded(data, Granted)
        return found if status == 200 and found and found["access_token"] else None

    async def _document(self, place: str, kind: type[Words]) -> Words | None:
        status, data = await self._http.ask("GET", place, _JSON)
        return _decoded(data, kind) if status == 200 else None

    def _code(self, back: str, state: str, server: LoginServer) -> str:
        """Return the code of the redirect address; checks `state` and issuer (RFC 9207)."""
        given = parse_qs(urlsplit(back).query)
        issuer = given.get("iss")
        promised = server.get("authorization_response_iss_parameter_supported") is True
        if (issuer is None and promised) or (issuer and issuer != [server.get("issuer")]):
            raise self._failed("was answered by another log-in server than was asked.")
        if given.get("state") != [state]:
            raise self._failed("was answered by somebody else: the `state` differs.")
        if "code" not in given:
            reason = given.get("error", ["no code was given"])[0]
            raise self._failed(f"was not agreed to: {one_line(reason)[:200]}.")
        return given["code"][0]

    def _address(self) -> str:
        """Return the name of a server that publishes none (RFC 8707): `url` without a fragment."""
        parts = urlsplit(self._config.url)
        path = "" if parts.path == "/" else parts.path
        return urlunsplit((parts.scheme, parts.netloc.lower(), path, parts.query, ""))

    def _failed(self, text: str) -> KodeError:
        return server_error(self._config.name, text, "unauthorized")


def _challenge(header: str) -> dict[str, str]:
    """Return the parameters of a `WWW-Authenticate: Bearer …` header."""
    _, _, parameters = header.partition(" ")
    return {name.lower(): quoted or plain for name, quoted, plain in _CHALLENGE.findall(parameters)}


def _scope(
    challenge: Mapping[str, str], resource: Resource, server: LoginServer, kept: Token | None
) -> str:
    """Return the scopes to request: those the refusal names, else all the server lists, else ""."""
    wanted = challenge.get("scope", "").split()
    if kept is not None and challenge.get("error") == "insufficient_scope":
        wanted = [*kept.scope.split(), *wanted]
    if not wanted:
        wanted = list(resource.get("scopes_supported") or ())
    offered = server.get("scopes_supported") or ()
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
    """Return a document's well-known addresses: with the path of `url` appended, then without."""
    path = urlsplit(url).path.rstrip("/")
    base = f"{_origin(url)}/.well-known/{name}"
    return [base + path, base] if path else [base]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _covers(resource: str, url: str) -> bool:
    """Return whether a protected resource is this server, or contains its path."""
    same = _origin(resource).lower() == _origin(url).lower()
    above, path = urlsplit(resource).path.rstrip("/"), urlsplit(url).path.rstrip("/")
    return same and (path == above or path.startswith(f"{above}/"))


def _decoded(data: bytes, kind: type[Words]) -> Words | None:
    """Decode a document, or return None if it does not have the fields of `kind`."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(data, type=kind)
    return None
