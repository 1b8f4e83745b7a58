"""The wire as JSON Schema 2020-12.

`$defs` holds every type; `x-kode` names those of each method, and holds the table of errors.
"""

import json
from typing import Any

from kode_sidecar.core.domain.notice_codes import NOTICES
from kode_sidecar.core.protocol.initialize import (
    KodeInitializeOptions,
    KodeInitializeResult,
    UnsupportedVersionInfo,
)
from kode_sidecar.core.protocol.method import Method
from kode_sidecar.core.protocol.methods import METHODS, PROTOCOL_VERSION
from kode_sidecar.errors import ERRORS
from protocol.export.wire_types import (
    Choice,
    ListOf,
    OneOf,
    Open,
    Ref,
    Scalar,
    Shape,
    WireStruct,
    WireTypes,
)

Json = dict[str, Any]

_ABOUT = (
    "The types of kode/* messages. Members that are not listed may come and are to be ignored. "
    "Every object has room for `_meta`. Words that the server sends are open: `unknown:` says "
    "what to take one for that is not listed. "
    "`x-kode` says which types a method has, and lists the errors and the notices."
)


def schema_file(types: WireTypes) -> bytes:
    """`schema.json`."""
    document: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:kode:protocol:{PROTOCOL_VERSION}",
        "title": f"The kode protocol {PROTOCOL_VERSION}",
        "description": _ABOUT,
        "x-kode": {
            "protocolVersion": PROTOCOL_VERSION,
            "initialize": {
                "options": _ref(KodeInitializeOptions.__name__),
                "result": _ref(KodeInitializeResult.__name__),
                "errorData": _ref(UnsupportedVersionInfo.__name__),
            },
            "methods": {method.name: _method(method) for method in METHODS},
            "event": _ref("Event"),
            "errorData": _ref("ErrorInfo"),
            "errors": {
                name: {"code": code, "category": category, "retryable": retryable}
                for name, (code, category, retryable) in ERRORS.items()
            },
            "notices": dict(NOTICES),
        },
        "$defs": {
            **{
                name: {"description": union.doc, **_schema(union.shape)}
                for name, union in types.unions.items()
            },
            **{
                name: _object(struct)
                for name, struct in types.structs.items()
                if not struct.is_base
            },
        },
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def _method(method: Method) -> Json:
    entry: Json = {
        "summary": method.summary,
        "kind": method.kind,
        "from": "client" if method.direction == "client_to_server" else "server",
        "params": _ref(method.params.__name__),
    }
    if method.result is not None:
        entry["result"] = _ref(method.result.__name__)
        entry["errors"] = list(method.errors)
    return entry | {"since": method.since, "stability": method.stability}


def _object(struct: WireStruct) -> Json:
    properties: Json = {}
    required: list[str] = []
    if struct.tag is not None:
        properties["type"] = {"const": struct.tag}
        required.append("type")
    for field in (*struct.inherited, *struct.own):
        properties[field.name] = _schema(field.shape)
        if field.default is not None:
            properties[field.name] |= {"default": field.default}
        if field.required:
            required.append(field.name)
    properties["_meta"] = {}  # any value: nobody here reads it
    described: Json = {"description": struct.doc} if struct.doc else {}
    schema: Json = described | {"type": "object", "properties": properties}
    return schema | {"required": required} if required else schema


def _schema(shape: Shape) -> Json:
    match shape:
        case Scalar("any"):
            return {}
        case Scalar(name):
            return {"type": name}
        case Choice(values):
            return {"type": "string", "enum": list(values)}
        case Ref(name):
            return _ref(name)
        case Open(known, nearest):
            open_words = {"anyOf": [_schema(known), {"type": "string"}]}
            return open_words | {"description": f"unknown: {nearest}"}
        case ListOf(item):
            return {"type": "array", "items": _schema(item)}
        case OneOf(options):
            return {"anyOf": [_schema(option) for option in options]}


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}
