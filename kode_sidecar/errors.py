"""All errors that a user or a plugin author can meet, in one table.

Standard library only and cheap to import: `boot.stdio_handshake` answers with it before
anything heavy is loaded. `domain.error_info` turns a `KodeError` into its wire form.
"""

# JSON-RPC 2.0 section 5.1 and LSP 3.17 "Base Protocol / ErrorCodes".
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800

# code -> (JSON-RPC code, category, retryable). Codes from -33001 on are kode's own; those that
# reach only the model, the log or a turn's end carry INTERNAL_ERROR and never answer a request.
ERRORS: dict[str, tuple[int, str, bool]] = {
    "ParseError": (PARSE_ERROR, "protocol", False),
    "InvalidRequest": (INVALID_REQUEST, "protocol", False),
    "MethodNotFound": (METHOD_NOT_FOUND, "protocol", False),
    "InvalidParams": (INVALID_PARAMS, "validation", False),
    "InternalError": (INTERNAL_ERROR, "unknown", False),
    "NotInitialized": (SERVER_NOT_INITIALIZED, "protocol", True),
    "RequestCancelled": (REQUEST_CANCELLED, "protocol", False),
    "SessionNotFound": (-33001, "storage", False),
    "MessageNotFound": (-33002, "storage", False),
    "TurnActive": (-33003, "engine", True),
    "NoActiveTurn": (-33004, "engine", False),
    "TurnMismatch": (-33005, "engine", False),
    "StaleBase": (-33006, "validation", True),
    "ChangeSetClosed": (-33007, "validation", False),
    "HunkConflict": (-33008, "validation", False),
    "Overloaded": (-33009, "engine", True),
    "Denied": (-33010, "permission", False),
    "Provider": (-33011, "provider", True),
    "RateLimited": (-33012, "rate_limit", True),
    "ContextOverflow": (-33013, "provider", False),
    "AuthRequired": (-33014, "config", False),
    "CapabilityMissing": (-33015, "protocol", False),
    "PathOutsideRoots": (-33016, "sandbox", False),
    "TooLarge": (-33017, "validation", False),
    "ReplayGap": (-33018, "storage", False),
    "ReadOnly": (-33019, "storage", False),
    "ConfigInvalid": (-33020, "config", False),
    "Unencodable": (-33021, "validation", False),
    "UnsupportedVersion": (-33022, "protocol", False),
    "Storage": (-33023, "storage", True),
    "ChangeSetNotFound": (-33024, "storage", False),
    "BlobNotFound": (-33025, "storage", False),
    "MemoryNotFound": (-33026, "memory", False),
    "RunNotFound": (-33027, "storage", False),
    "Network": (-33030, "network", True),
    "ModelNotFound": (-33031, "provider", False),
    "ContentFiltered": (-33032, "provider", False),
    "IncompleteAnswer": (-33033, "provider", True),
    "EmptyAnswer": (-33034, "provider", True),
    "QuotaExceeded": (-33035, "provider", False),
    "BudgetReached": (-33036, "config", False),
    "GoalNotReached": (INTERNAL_ERROR, "engine", False),
    "Repeating": (INTERNAL_ERROR, "engine", False),
    "UnknownTool": (INTERNAL_ERROR, "tool", False),
    "InvalidArguments": (INTERNAL_ERROR, "tool", False),
    "ToolFailed": (-33029, "tool", False),
    "Cancelled": (INTERNAL_ERROR, "engine", False),
    "NotFound": (-33028, "tool", False),
    "NotEditable": (INTERNAL_ERROR, "tool", False),
    "Unsynced": (INTERNAL_ERROR, "tool", True),
    "SkillNotFound": (INTERNAL_ERROR, "skill", False),
    "SkillInvalid": (INTERNAL_ERROR, "skill", False),
    "MemoryRefused": (INTERNAL_ERROR, "memory", False),
    "MemoryUnavailable": (INTERNAL_ERROR, "memory", True),
    "RunTimedOut": (INTERNAL_ERROR, "engine", False),
    "RunDied": (INTERNAL_ERROR, "engine", False),
    "DeliverableMissing": (INTERNAL_ERROR, "governance", False),
}


def invalid_at(path: str, wrong: str) -> "KodeError":
    """Return an `InvalidParams` that names its JSON path, in text and in `details`."""
    return KodeError("InvalidParams", f"{path}: {wrong}", details={"path": path})


class KodeError(Exception):
    """An expected failure. `message` names what is wrong and how to fix it.

    It never holds a key, and no path outside the workspace roots.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_ms: int | None = None,
        retryable: bool | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.rpc_code, self.category, default_retryable = ERRORS[code]
        self.retryable = default_retryable if retryable is None else retryable
        self.http_status = http_status
        self.retry_after_ms = retry_after_ms
        self.details = details

    def as_data(self) -> dict[str, object]:
        """Return the wire form (`ErrorInfo`) as plain data, without importing msgspec."""
        data: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "category": self.category,
            "retryable": self.retryable,
        }
        if self.http_status is not None:
            data["httpStatus"] = self.http_status
        if self.retry_after_ms is not None:
            data["retryAfterMs"] = self.retry_after_ms
        if self.details:
            data["details"] = self.details
        return data
