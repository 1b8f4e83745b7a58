"""The params of `kode/editor/didChangeContext`."""

from msgspec import Struct

from kode_sidecar.domain.change_set import Range


class EditorContextParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the user looks at; it replaces what was said before.

    `uri` is the active document, absent when there is none. Of an empty `selection`, a mere
    cursor, the model is not told; `visible_range` is kept for later.
    """

    uri: str | None = None
    selection: Range | None = None
    visible_range: Range | None = None
