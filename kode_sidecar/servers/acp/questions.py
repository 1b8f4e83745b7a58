"""Asks the user to permit a call, to grant an edit, or to choose an answer."""

from collections.abc import Sequence
from secrets import token_hex
from typing import Any, cast

from kode_sidecar.core.protocol.questions import AskParams, PermissionRequestParams
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.tool_cards import Json, fenced, text_content
from kode_sidecar.servers.acp.types import (
    CancelledOutcome,
    CreateElicitationResponse,
    PermissionOptionKind,
    RequestPermissionResponse,
)
from kode_sidecar.servers.acp.updates import Card
from kode_sidecar.servers.lsp import Connection

_KINDS: dict[str, PermissionOptionKind] = {
    "allow_once": "allow_once",
    "allow_session": "allow_always",
    "allow_always": "allow_always",
    "reject": "reject_once",
}
REJECT_ALWAYS = "reject-always"
_EDIT_OPTIONS: Sequence[tuple[PermissionOptionKind, str]] = (
    ("allow_once", "Apply"),
    ("allow_always", "Apply, and all later edits of this file"),
    ("reject_once", "Reject"),
    ("reject_always", "Reject, and all later edits of this file"),
)


class AcpQuestions:
    """Asks the client of one session. A cancelled request counts as no answer."""

    def __init__(self, connection: Connection, client: ClientAbilities, session_id: str) -> None:
        self._connection = connection
        self._client = client
        self._session_id = session_id

    async def permission(
        self, question: PermissionRequestParams, card: Card | None, *, lasting_no: bool
    ) -> str | None:
        """Ask for permission; return the chosen option, or `REJECT_ALWAYS` if `lasting_no`."""
        options = [
            {"optionId": one.option_id, "name": one.name, "kind": _KINDS[one.kind]}
            for one in question.options
        ]
        if lasting_no:
            name = "Reject in this session"
            options.append({"optionId": REJECT_ALWAYS, "name": name, "kind": "reject_always"})
        content = [text_content(question.reason)] if question.reason else []
        if question.diff:
            content.append(text_content(fenced(question.diff, "diff")))
        call: Json = {"toolCallId": question.request_id}
        if card is not None:
            call = {**card.head, "content": [*card.content, *content]}
        return await self._ask({**call, "title": question.title, "content": content}, options)

    async def edit(self, card: Card, locations: Sequence[Json]) -> PermissionOptionKind | None:
        """Ask to grant the edits that a card shows; return the kind of the chosen option."""
        options = [{"optionId": kind, "name": name, "kind": kind} for kind, name in _EDIT_OPTIONS]
        paths = [str(one["path"]) for one in locations]
        title = f"Edit {', '.join(paths)}"
        answer = await self._ask(
            {**card.head, "title": title, "locations": list(locations)}, options
        )
        return next((kind for kind, _ in _EDIT_OPTIONS if kind == answer), None)

    async def choice(self, question: AskParams, card: Card | None) -> Sequence[str]:
        """Return what the user chose. Raises KodeError if the client cannot ask."""
        if self._client.shows_forms:
            return await self._form(question, card)
        call: Json = {"toolCallId": question.tool_use_id}
        if card is not None:
            call = card.head
        options = [
            {"optionId": str(number), "name": choice, "kind": "allow_once"}
            for number, choice in enumerate(question.choices)
        ]
        none = {"optionId": "none", "name": "None of these", "kind": "reject_once"}
        answer = await self._ask({**call, "title": question.question}, [*options, none])
        chosen = {str(number): choice for number, choice in enumerate(question.choices)}
        return [chosen[answer]] if answer in chosen else []

    async def _form(self, question: AskParams, card: Card | None) -> Sequence[str]:
        choices = list(question.choices)
        answer: Json = {"type": "string", "title": "Answer", "enum": choices}
        if question.multi:
            items = {"type": "string", "enum": choices}
            answer = {"type": "array", "title": "Answers", "items": items}
        schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        params: Json = {
            "mode": "form",
            "sessionId": self._session_id,
            "message": question.question,
            "requestedSchema": schema,
        }
        if card is not None:
            params["toolCallId"] = card.id
        result = await self._connection.request(
            "elicitation/create", params, CreateElicitationResponse
        )
        reported: Any = (result.content or {}).get("answer") if result.action == "accept" else None
        found = cast(list[object], reported) if isinstance(reported, list) else [reported]
        return [choice for choice in choices if choice in found]

    async def visit(self, address: str, why: str) -> str:
        """Have the user open an address; return the id to pass to `visited` when it is done.

        Raises KodeError `Cancelled` if the user refuses.
        """
        visit_id = token_hex(8)
        params: Json = {
            "mode": "url",
            "sessionId": self._session_id,
            "message": why,
            "elicitationId": visit_id,
            "url": address,
        }
        result = await self._connection.request(
            "elicitation/create", params, CreateElicitationResponse
        )
        if result.action != "accept":
            raise KodeError("Cancelled", "The address was not opened.")
        return visit_id

    def visited(self, visit_id: str) -> None:
        """Report to the client that the visit to an address is complete."""
        self._connection.notify("elicitation/complete", {"elicitationId": visit_id})

    async def _ask(self, call: Json, options: Sequence[Json]) -> str | None:
        params = {"sessionId": self._session_id, "toolCall": call, "options": list(options)}
        result = await self._connection.request(
            "session/request_permission", params, RequestPermissionResponse
        )
        outcome = result.outcome
        return None if isinstance(outcome, CancelledOutcome) else outcome.option_id
