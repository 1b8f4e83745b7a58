"""`python -m protocol.export.acp_types`: msgspec structs from the published schema of ACP v1.

Only what the room `acp` reads or writes is made. A union that a member tells apart becomes tagged
structs; one that nothing tells apart becomes a struct with the members of all of its forms.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "protocol" / "acp.schema.json"
MODULE = ROOT / "kode_sidecar" / "servers" / "acp" / "types.py"

# What clients send; the rest follows by reference.
READ = (
    "AuthenticateRequest",
    "NewSessionRequest",
    "LoadSessionRequest",
    "ResumeSessionRequest",
    "ListSessionsRequest",
    "DeleteSessionRequest",
    "CloseSessionRequest",
    "SetSessionModeRequest",
    "SetSessionConfigOptionRequest",
    "PromptRequest",
    "CancelNotification",
    "ReadTextFileResponse",
    "RequestPermissionResponse",
    "CreateElicitationResponse",
    "CreateTerminalResponse",
    "WaitForTerminalExitResponse",
    "TerminalOutputResponse",
)
# Words of closed sets that our own messages use.
WORDS = ("ToolKind", "ToolCallStatus", "StopReason", "PermissionOptionKind")
# Not published as stable; as the unstable schema of the same package has it.
UNSTABLE = '''

class ForkSessionRequest(Struct, frozen=True, kw_only=True):
    """`session/fork`, unstable: `_meta.kode.messageId` names the message to fork at."""

    session_id: str = field(name="sessionId")
    cwd: str
    additional_directories: tuple[str, ...] = field(default=(), name="additionalDirectories")
    mcp_servers: tuple[McpServer, ...] = field(default=(), name="mcpServers")
    meta: dict[str, Any] | None = field(default=None, name="_meta")
'''
HEAD = '''"""Made from the published schema of ACP (see `protocol/acp.NOTICE.md`). Do not edit it.

`python3 -m protocol.export.acp_types` writes it.
"""

from typing import Any, Literal

from msgspec import Struct, field
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}

Schema = Mapping[str, Any]


class Maker:
    """Writes one struct after another, each after those it refers to."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._made: dict[str, str] = {}

    def text(self) -> str:
        """Return the whole module."""
        words = "".join(f"\n{name} = {self._words(self._definitions[name])}" for name in WORDS)
        for name in READ:
            self._struct(name)
        return HEAD + words + "\n" + "".join(self._made.values()) + UNSTABLE

    def _struct(self, name: str, tag: tuple[str, str] | None = None) -> str:
        if name in self._made:
            return name
        members, required = self._members(self._definitions[name])
        for left_out in ("annotations", *(tag or ())[:1]):
            members.pop(left_out, None)
        lines = [self._line(key, value, key in required) for key, value in members.items()]
        tagging = f', tag_field="{tag[0]}", tag="{tag[1]}"' if tag else ""
        reported = str(self._definitions[name].get("description", name))
        about = reported.split("\n")[0].partition(". ")[0].partition(", ")[0].rstrip(".")
        body = "\n".join(f"    {line}" for line in lines)
        self._made[name] = (
            f"\n\nclass {name}(Struct, frozen=True, kw_only=True{tagging}):\n"
            f'    """{about}."""\n\n{body}\n'
        )
        return name

    def _members(self, schema: Schema) -> tuple[dict[str, Schema], set[str]]:
        """Return the members of all forms, and those that each form needs."""
        members = dict(schema.get("properties", {}))
        required = set(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            found, needed = self._members(self._resolved(part))
            members |= found
            required |= needed
        forms = [self._members(self._resolved(one)) for one in self._forms(schema)]
        for found, _ in forms:
            for key, value in found.items():
                members[key] = {"anyOf": [members[key], value]} if key in members else value
        if forms:
            required |= {key for key in forms[0][1] if all(key in needed for _, needed in forms)}
        return members, required

    def _forms(self, schema: Schema) -> Iterator[Schema]:
        for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            if one.get("type") != "null":
                yield one

    def _resolved(self, schema: Schema) -> Schema:
        ref = schema.get("$ref")
        return schema if ref is None else self._definitions[ref.rpartition("/")[2]]

    def _line(self, key: str, schema: Schema, needed: bool) -> str:
        kind = self._kind(schema)
        name = "meta" if key == "_meta" else _snake(key)
        rename = "" if name == key else f'name="{key}"'
        if needed:
            return f"{name}: {kind}" + (f" = field({rename})" if rename else "")
        default = "()" if kind.startswith("tuple") else "None"
        if default == "None" and "None" not in kind.split(" | "):
            kind = f"{kind} | None"
        if not rename:
            return f"{name}: {kind} = {default}"
        return f"{name}: {kind} = field(default={default}, {rename})"

    def _kind(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        if "allOf" in schema and "properties" not in schema:
            return self._kind(schema["allOf"][0])
        for forms in (schema.get("anyOf"), schema.get("oneOf")):
            if forms:
                return " | ".join(dict.fromkeys(self._kind(form) for form in forms))
        kinds = schema.get("type", "object")
        found = [
            self._plain(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)
        ]
        return " | ".join(found)

    def _plain(self, kind: str, schema: Schema) -> str:
        if kind == "null":
            return "None"
        if kind == "array":
            return f"tuple[{self._kind(schema['items'])}, ...]"
        return SCALARS.get(kind, "dict[str, Any]")

    def _named(self, name: str) -> str:
        schema = self._definitions[name]
        if name in WORDS:
            return name
        if schema.get("type") in SCALARS:
            return SCALARS[schema["type"]]
        reported = schema.get("discriminator", {}).get("propertyName")
        if reported:
            return " | ".join(self._tagged(name, reported))
        forms = list(self._forms(schema))
        if forms and all(self._resolved(form).get("type") in (*SCALARS, "array") for form in forms):
            return self._kind(schema)
        return self._struct(name)

    def _tagged(self, union: str, reported: str) -> Iterator[str]:
        for form in self._definitions[union]["oneOf"]:
            word = form["properties"][reported]["const"]
            if "allOf" in form:
                yield self._struct(form["allOf"][0]["$ref"].rpartition("/")[2], (reported, word))
            else:
                own = f"{word.title().replace('_', '')}{union.removeprefix('RequestPermission')}"
                self._made.setdefault(
                    own,
                    f"\n\nclass {own}(Struct, frozen=True, kw_only=True, "
                    f'tag_field="{reported}", tag="{word}"):\n    """`{word}`."""\n',
                )
                yield own

    def _words(self, schema: Schema) -> str:
        words = [form["const"] for form in schema.get("oneOf", ()) or schema["anyOf"]]
        return f"Literal[{', '.join(json.dumps(word) for word in words)}]"


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def acp_types() -> str:
    """Return the module's text, formatted."""
    definitions = json.loads(SCHEMA.read_bytes())["$defs"]
    text = Maker(definitions).text()
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(MODULE), "-"]
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True)
    return done.stdout


def main() -> None:
    """Write the module."""
    MODULE.write_text(acp_types(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
