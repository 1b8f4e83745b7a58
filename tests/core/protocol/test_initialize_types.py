"""The handshake's types and `protocol.handshake`, which does without them, say the same."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from kode_sidecar import __version__
from kode_sidecar.core.protocol.generated import SCHEMA_SHA256
from kode_sidecar.core.protocol.handshake import EDITOR_SETTINGS, LIMITS
from kode_sidecar.core.protocol.initialize import (
    EditorSettings,
    KodeInitializeOptions,
    KodeInitializeResult,
    ServerLimits,
    UnsupportedVersionInfo,
)
from kode_sidecar.terminal.client.handshake import Handshake
from tests.support.program import SERVE
from tests.support.protocol_files import through
from tests.support.stdio_process import StdioProcess, initialize


def wire_names(kind: Any) -> list[str]:
    return [field.encode_name for field in fields(kind)]


# E1: nothing in the answer that the type does not know, and the other way round
@pytest.mark.program
def test_the_real_answer_is_of_its_type() -> None:
    with StdioProcess(SERVE) as process:
        kode = process.start()["capabilities"]["experimental"]["kode"]
    assert through(kode, KodeInitializeResult) == kode
    assert list(kode) == wire_names(KodeInitializeResult)
    assert kode["schemaSha256"] == SCHEMA_SHA256
    assert kode["server"]["version"] == __version__


@pytest.mark.program
def test_a_refusal_is_of_its_type() -> None:
    with StdioProcess(SERVE) as process:
        options = {"kode": {"protocolVersions": ["7.0"]}}
        process.send(initialize(initializationOptions=options))
        data = process.next()["error"]["data"]
    assert through(data, UnsupportedVersionInfo) == data
    assert data["supportedVersions"] == ["1.0", "0.9"]


def test_settings_and_limits_have_the_members_of_the_handshake() -> None:
    assert wire_names(EditorSettings) == list(EDITOR_SETTINGS)
    assert wire_names(ServerLimits) == list(LIMITS)


def test_our_own_client_says_what_the_type_allows(tmp_path: Path) -> None:
    options = Handshake(roots=[tmp_path]).params()["initializationOptions"]["kode"]
    # Defaults may be spelled out: `trusted`, and settings without any.
    assert through(options, KodeInitializeOptions).items() <= options.items()
