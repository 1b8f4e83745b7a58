"""No key in a recording, wherever a text is cut; and everything else stays where it was."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.settings import LoadedSettings, Settings
from kode_sidecar.core.text.secret_text import SecretMask
from kode_sidecar.devtools.recording.recorded_lines import RecordingHead
from kode_sidecar.devtools.recording.redaction import recorded_settings, unfinished
from kode_sidecar.errors import KodeError

KEY = "tk4711-of-the-user-0815-kept"
WORDS = st.text("ab \n茶{}", max_size=8)


@given(st.lists(WORDS, min_size=2, max_size=5), st.data())
def test_bytes_in_any_pieces_hold_no_key(words: list[str], data: st.DataObject) -> None:  # W14
    whole = KEY.join(words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    mask = SecretMask([KEY])
    written, held = [], b""
    for piece in pieces:
        held += piece
        split = unfinished(held)
        written.append(held[:split])
        held = held[split:]
    written.append(held)
    masked = [mask.data(part) for part in written]
    assert b"".join(written) == whole
    assert KEY.encode() not in b"".join(masked)
    assert [len(part) for part in masked] == [len(part) for part in written]
    assert b"".join(masked) == whole.replace(KEY.encode(), b"*" * len(KEY))


@given(WORDS, st.integers(12, len(KEY)), st.booleans())
def test_a_key_that_was_cut_off_is_still_one(around: str, length: int, front: bool) -> None:
    part = KEY[:length] if front else KEY[-length:]
    line = f'{{"title":"{around}{part}"}}'.encode()
    masked = SecretMask([KEY]).stars(line.decode(), json_line=True)
    assert part not in masked
    assert len(masked) == len(line.decode())


def test_what_looks_like_a_key_is_none_of_ours_either() -> None:
    line = (
        b'{"authorization":"Basic dXNlcjpwYXNz","text":"bearer abcdefghij sk-0123456789abcdef",'
        b'"token":"turn-1","api_key":"x\\"y"}'
    )
    masked = SecretMask([]).stars(line.decode(), json_line=True)
    for secret in ("dXNlcjpwYXNz", "abcdefghij", "0123456789abcdef", 'x\\"y'):
        assert secret not in masked
    assert '"token":"turn-1"' in masked  # that of a progress, in every frame


def test_settings_that_are_none_of_this_program_name_the_fault() -> None:
    head = RecordingHead(
        format=2, version="0", started="", platform="Linux", settings={"locale": 7}
    )
    paths = {"storage_root": Path("kept"), "log_dir": Path("logs")}
    here = LoadedSettings(settings=Settings(**paths), sources={})
    with pytest.raises(KodeError, match="The recorded settings") as found:
        recorded_settings(head, here)
    assert found.value.code == "Storage"
