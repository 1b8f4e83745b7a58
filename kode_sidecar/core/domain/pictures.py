"""Pictures for a model: which kinds it reads, and which kind the bytes are of."""

import base64
import binascii
import re

from kode_sidecar.core.domain.message import ImageBlock
from kode_sidecar.errors import invalid_at

TAKEN_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
# The first bytes of pictures: those that hosts take, then those that none takes.
_KINDS = (
    (re.compile(rb"\x89PNG"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"II\*\0|MM\0\*"), "image/tiff"),
    (re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL), "image/bmp"),
    (re.compile(rb"....ftyp(?:heic|heix|mif1|msf1)", re.DOTALL), "image/heic"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "image/avif"),
    (re.compile(rb"\x00\x00\x01\x00"), "image/x-icon"),
    (re.compile(rb"%PDF"), "application/pdf"),
    (re.compile(rb"\s*(?:<\?xml|<svg)"), "image/svg+xml"),
)


def picture_kind(picture: ImageBlock) -> str:
    """Return the kind of a picture by its first bytes; empty if they are unknown."""
    try:
        start = base64.b64decode(picture.data[:64], validate=True)
    except (binascii.Error, ValueError):
        return ""
    return next((kind for pattern, kind in _KINDS if pattern.match(start)), "")


def check_picture(block: ImageBlock, path: str) -> None:
    """Raise KodeError `InvalidParams` for a picture that no model's host takes."""
    if not _is_base64(block.data):
        raise invalid_at(f"{path}.data", "this is no image in base64.")
    kind = picture_kind(block) or block.media_type
    if kind not in TAKEN_PICTURES:
        taken = ", ".join(TAKEN_PICTURES)
        raise invalid_at(f"{path}.mediaType", f"models do not take {kind}; convert it to {taken}.")


def _is_base64(data: str) -> bool:
    try:
        return bool(binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError):
        return False
