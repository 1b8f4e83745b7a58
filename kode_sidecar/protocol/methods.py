"""THE table of `kode/*` methods: everything generated about the wire comes from here."""

from dataclasses import dataclass
from typing import Any, Literal

from kode_sidecar.protocol import (
    change_set,
    documents,
    events,
    process,
    questions,
    run,
    session,
    turn,
)

PROTOCOL_VERSION = "0.9"

Direction = Literal["client_to_server", "server_to_client"]
Kind = Literal["request", "notification"]


@dataclass(frozen=True)
class Method:
    """One method. `errors` are codes of `errors.ERRORS` beyond InvalidParams and InternalError."""

    name: str
    summary: str
    params: type[Any]
    result: type[Any] | None = None
    errors: tuple[str, ...] = ()
    direction: Direction = "client_to_server"
    since: str = "0.9"
    stability: Literal["stable", "experimental"] = "stable"

    @property
    def kind(self) -> Kind:
        return "notification" if self.result is None else "request"


METHODS: tuple[Method, ...] = (
    Method(
        "kode/session/new",
        "Create a session; it is on disk before the answer.",
        session.SessionNewParams,
        session.SessionNewResult,
        ("ConfigInvalid", "Storage"),
    ),
    Method(
        "kode/session/list",
        "The sessions that are kept, the one last written to first.",
        session.SessionListParams,
        session.SessionListResult,
        ("Storage",),
    ),
    Method(
        "kode/session/get",
        "A session's head, its branches and its totals.",
        session.SessionRef,
        session.SessionGetResult,
        ("SessionNotFound", "Storage"),
    ),
    Method(
        "kode/session/update",
        "Change title, mode, model or meta; saved before the answer, told by `session.updated`.",
        session.SessionUpdateParams,
        process.Empty,
        ("SessionNotFound", "ReadOnly", "Storage"),
    ),
    Method(
        "kode/session/delete",
        "Remove a session and all it left on disk. A turn that runs in it is cancelled first.",
        session.SessionRef,
        process.Empty,
        ("SessionNotFound", "ReadOnly", "Storage"),
    ),
    Method(
        "kode/session/attach",
        "Open a session of an earlier process, or see again all of one that is open: a replay or a"
        " snapshot, then the stream.",
        session.SessionAttachParams,
        session.SessionAttachResult,
        ("SessionNotFound", "ReadOnly", "ReplayGap", "Storage"),
    ),
    Method(
        "kode/session/detach",
        "Leave a session to other processes. A turn that runs in it is cancelled first.",
        session.SessionRef,
        process.Empty,
        ("SessionNotFound",),
    ),
    Method(
        "kode/session/fork",
        "A new session whose history is the path to a message of this one; saved.",
        session.SessionForkParams,
        session.SessionForkResult,
        ("SessionNotFound", "MessageNotFound", "Storage"),
    ),
    Method(
        "kode/session/export",
        "A session as one text.",
        session.SessionExportParams,
        session.SessionExportResult,
        ("SessionNotFound", "CapabilityMissing", "TooLarge", "Storage"),
    ),
    Method(
        "kode/turn/start",
        "Send a prompt. Answers at acceptance; the turn then streams.",
        turn.TurnStartParams,
        turn.TurnStartResult,
        ("SessionNotFound", "ReadOnly", "MessageNotFound", "TurnActive", "AuthRequired", "Storage"),
    ),
    Method(
        "kode/turn/cancel",
        "Stop the running turn. Cancelling an idle session answers `cancelled: false`.",
        turn.TurnCancelParams,
        turn.TurnCancelResult,
        ("SessionNotFound", "ReadOnly"),
    ),
    Method(
        "kode/turn/steer",
        "Tell the running turn something; it is saved, and the model gets it before its next step.",
        turn.TurnSteerParams,
        process.Empty,
        ("SessionNotFound", "ReadOnly", "NoActiveTurn", "TurnMismatch", "Storage"),
    ),
    Method(
        "kode/message/list",
        "The messages of a session as they are kept, of one branch or of all.",
        session.MessageListParams,
        session.MessageListResult,
        ("SessionNotFound", "MessageNotFound", "Storage"),
    ),
    Method(
        "kode/blob/read",
        "A page of a text that was too large to travel at once.",
        events.BlobReadParams,
        events.BlobReadResult,
        ("BlobNotFound", "Storage"),
    ),
    Method(
        "kode/changeSet/list",
        "The change sets of a session of this process, oldest first, without texts.",
        change_set.ChangeSetListParams,
        change_set.ChangeSetListResult,
        ("SessionNotFound",),
    ),
    Method(
        "kode/tree/get",
        "The tree of a session's messages, without their blocks.",
        session.TreeGetParams,
        session.TreeGetResult,
        ("SessionNotFound", "MessageNotFound", "Storage"),
    ),
    Method(
        "kode/tree/setHead",
        "Let the next turn start below another message; saved before the answer, told by"
        " `session.updated`.",
        session.TreeSetHeadParams,
        process.Empty,
        ("SessionNotFound", "MessageNotFound", "TurnActive", "Storage"),
    ),
    Method(
        "kode/context/inspect",
        "The exact next request to the model, part by part.",
        turn.ContextInspectParams,
        turn.ContextInspectResult,
        ("SessionNotFound", "MessageNotFound", "ConfigInvalid"),
    ),
    Method(
        "kode/context/compact",
        "Let the model sum up the conversation now; `kode/tree/setHead` to the summary's parent"
        " undoes it.",
        session.SessionRef,
        turn.ContextCompactResult,
        (
            "SessionNotFound",
            "TurnActive",
            "AuthRequired",
            "Provider",
            "RateLimited",
            "ContextOverflow",
            "Storage",
        ),
    ),
    Method(
        "kode/usage/get",
        "Tokens and cost by message, turn, session, day or model, over all sessions.",
        process.UsageGetParams,
        process.UsageGetResult,
        ("SessionNotFound", "Storage"),
    ),
    Method(
        "kode/changeSet/get",
        "A change set as it stands now, with a unified diff.",
        change_set.ChangeSetRef,
        change_set.ChangeSetView,
        ("ChangeSetNotFound",),
    ),
    Method(
        "kode/changeSet/decide",
        "Accept, reject or replace hunks; answers when the editor's text was checked.",
        change_set.DecideParams,
        change_set.DecideResult,
        ("ChangeSetNotFound", "ChangeSetClosed", "Storage"),
    ),
    Method(
        "kode/changeSet/undo",
        "Take applied hunks back where they stand now; the user's later edits stay. Undoing that"
        " puts them there again.",
        change_set.UndoParams,
        change_set.UndoResult,
        ("ChangeSetNotFound", "Storage"),
    ),
    Method(
        "kode/freshness/get",
        "The files that a session's model has read and edited, and which of them others changed.",
        documents.FreshnessGetParams,
        documents.FreshnessGetResult,
        ("SessionNotFound",),
    ),
    Method(
        "kode/permission/list",
        "The permission rules in force in a session, and what each one decided.",
        questions.PermissionListParams,
        questions.PermissionListResult,
        ("SessionNotFound",),
    ),
    Method(
        "kode/permission/set",
        "Make, change or take back one of a session's own rules.",
        questions.PermissionSetParams,
        process.Empty,
        ("SessionNotFound",),
    ),
    Method(
        "kode/models/list",
        "The models of every provider, as its host lists them to your key and as we know them.",
        process.Empty,
        process.ModelsListResult,
        ("ConfigInvalid",),
    ),
    Method(
        "kode/skills/list",
        "The skills on offer to the model, and those that cannot be used.",
        process.Empty,
        process.SkillsListResult,
    ),
    Method(
        "kode/memory/list",
        "What the model wants to be remembered, and what the user has accepted.",
        process.MemoryListParams,
        process.MemoryListResult,
        ("Storage",),
    ),
    Method(
        "kode/memory/decide",
        "Accept memories, or forget them; saved before the answer. Later prompts are told what was"
        " accepted.",
        process.MemoryDecideParams,
        process.Empty,
        ("MemoryNotFound", "Storage"),
    ),
    Method(
        "kode/run/start",
        "Do a job without anybody deciding: in a sandbox, judged by what it delivers. Only in a"
        " trusted workspace.",
        run.RunStartParams,
        run.RunStartResult,
        ("Denied", "ConfigInvalid", "ReadOnly", "Storage"),
    ),
    Method(
        "kode/run/get",
        "How far a run is, and what became of it.",
        run.RunGetParams,
        run.RunGetResult,
        ("RunNotFound", "ConfigInvalid", "Storage"),
    ),
    Method(
        "kode/run/cancel",
        "End a run soon: what it began is stopped, and its status becomes `cancelled`.",
        run.RunCancelParams,
        run.RunCancelResult,
        ("RunNotFound", "ConfigInvalid", "Storage"),
    ),
    Method(
        "kode/schema/get",
        "The JSON Schema of everything here.",
        process.Empty,
        process.SchemaGetResult,
    ),
    Method("kode/ping", "Is anybody there?", process.PingParams, process.PingResult),
    Method(
        "kode/doctor",
        "Settings with their sources, and what is wrong with them. No secrets.",
        process.Empty,
        process.DoctorResult,
    ),
    Method(
        "kode/editor/didChangeContext",
        "The user looks at something else; the next prompt tells the model, if the file is inside"
        " an open folder.",
        documents.EditorContextParams,
    ),
    Method(
        "kode/event",
        "Durable events of one session.",
        events.EventParams,
        direction="server_to_client",
    ),
    Method(
        "kode/delta",
        "Growth of open blocks.",
        events.DeltaParams,
        direction="server_to_client",
    ),
    Method(
        "kode/permission/request",
        "Ask the user to allow a tool call.",
        questions.PermissionRequestParams,
        questions.PermissionRequestResult,
        direction="server_to_client",
    ),
    Method(
        "kode/openDocument",
        "Open a file whose encoding only the editor knows; its `didOpen` brings the text. Only sent"
        " to clients with the capability `openDocument`.",
        documents.OpenDocumentParams,
        documents.OpenDocumentResult,
        direction="server_to_client",
    ),
    Method(
        "kode/ask",
        "Put a choice to the user for the model.",
        questions.AskParams,
        questions.AskResult,
        direction="server_to_client",
    ),
)
