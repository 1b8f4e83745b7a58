"""The result of `kode/schema/get`."""

from msgspec import Struct


class SchemaGetResult(Struct, frozen=True, kw_only=True):
    """`schema` is the text of `schema.json`, byte for byte; `sha256` is that of the handshake."""

    schema: str
    sha256: str
