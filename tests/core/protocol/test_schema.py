"""The JSON Schema says what the decoder does, in the words of a validator that is not ours."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.protocol.initialize import KodeInitializeOptions, KodeInitializeResult
from kode_sidecar.core.protocol.method import STABLE, Method
from kode_sidecar.core.protocol.methods import METHODS, PROTOCOL_VERSION
from kode_sidecar.core.protocol.session import SessionNewParams, SessionNewResult
from kode_sidecar.errors import ERRORS, INTERNAL_ERROR
from protocol.export import SCHEMA_FILE, generate
from tests.support.node_tools import PINS, run_node
from tests.support.protocol_files import example_names, read_example

SCHEMA: dict[str, Any] = json.loads(generate()[SCHEMA_FILE])
REPLACEMENTS: list[Any] = [None, 5, "x", True, [], {}]
GONE = object()


class Case(NamedTuple):
    """A value, the type it should be of, and whether it is one that clients send."""

    kind: type[Any]
    value: Any
    received: bool

    @property
    def fits(self) -> bool:
        """What the decoder says; words that the server sends are open."""
        try:
            msgspec.json.decode(msgspec.json.encode(self.value), type=self.kind)
        except msgspec.MsgspecError as error:
            return not self.received and str(error).startswith("Invalid enum value 'x'")
        return True


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from refs(inner)


def test_every_reference_leads_somewhere_and_every_type_is_used() -> None:
    defined = {f"#/$defs/{name}" for name in SCHEMA["$defs"]}
    used = set(refs(SCHEMA))
    assert used - defined == set()
    # What no other type holds is named by the table or the handshake.
    assert defined - used == set()


def test_the_table_is_in_the_schema() -> None:
    kode = SCHEMA["x-kode"]
    assert kode["protocolVersion"] == PROTOCOL_VERSION
    assert list(kode["methods"]) == [method.name for method in METHODS]
    assert list(kode["errors"]) == list(ERRORS)
    numbers = [code for code, _, _ in ERRORS.values() if code != INTERNAL_ERROR]
    assert len(numbers) == len(set(numbers))
    for method in METHODS:
        assert set(method.errors) <= ERRORS.keys()
        unnumbered = [one for one in method.errors if ERRORS[one][0] == INTERNAL_ERROR]
        assert not unnumbered, f"{method.name}: what answers a request has a number of its own"
        entry = kode["methods"][method.name]
        assert ("result" in entry) == (method.kind == "request")


def cases_of_examples() -> Iterator[Case]:
    """Every typed part of the golden frames."""
    for name, meant in example_names().items():
        frame = read_example(name)
        if name == "request.initialize":
            options = frame["params"]["initializationOptions"]["kode"]
            yield Case(KodeInitializeOptions, options, received=True)
        elif name == "response.initialize":
            kode = frame["result"]["capabilities"]["experimental"]["kode"]
            yield Case(KodeInitializeResult, kode, received=False)
        elif "error" in frame:
            yield Case(ErrorInfo, frame["error"]["data"], received=False)
        elif isinstance(meant, Method):
            asked = "params" in frame
            from_client = meant.direction == "client_to_server"
            kind = meant.params if asked else meant.result
            assert kind is not None
            yield Case(kind, frame["params" if asked else "result"], asked == from_client)
        else:
            event_params = next(m.params for m in METHODS if m.name == "kode/event")
            yield Case(event_params, frame["params"], received=False)


def spoiled(value: Any) -> Iterator[Any]:
    """Copies of `value` with one part left out or replaced."""
    for path in paths(value):
        for replacement in (GONE, *REPLACEMENTS):
            changed = copy.deepcopy(value)
            holder = changed
            for step in path[:-1]:
                holder = holder[step]
            if replacement is GONE:
                del holder[path[-1]]
            else:
                holder[path[-1]] = replacement
            yield changed


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value) if isinstance(value, list) else parts
    for key, inner in parts:
        yield (key,)
        yield from ((key, *path) for path in paths(inner))


def verdicts(cases: list[Case], folder: Path) -> list[str | None]:
    """What ajv has against each case, None where nothing."""
    listed = [{"ref": f"#/$defs/{c.kind.__name__}", "value": c.value} for c in cases]
    file = folder / "cases.json"
    file.write_text(json.dumps({"schema": SCHEMA, "cases": listed}), encoding="utf-8")
    done = run_node(str(PINS / "validate.cjs"), str(file))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_examples_are_valid(tmp_path: Path) -> None:
    cases = list(cases_of_examples())
    complaints = zip(cases, verdicts(cases, tmp_path), strict=True)
    assert [(case, said) for case, said in complaints if said is not None] == []


def test_words_that_the_server_sends_are_open_and_those_it_receives_are_not(
    tmp_path: Path,
) -> None:
    session = read_example("response.kode_session_new")["result"]
    new, result = SessionNewParams, SessionNewResult
    cases = [
        Case(new, {"mode": "review", "_meta": {"mine": 1}}, received=True),
        Case(new, {"mode": "tomorrow"}, received=True),
        Case(result, {**session, "_meta": {"mine": 1}}, received=False),
        Case(result, session | {"session": session["session"] | {"mode": "tomorrow"}}, False),
        Case(result, session | {"session": session["session"] | {"mode": 5}}, False),
    ]
    assert [said is None for said in verdicts(cases, tmp_path)] == [True, False, True, True, False]


def test_every_open_word_names_what_an_unknown_one_is_taken_for() -> None:
    listed = {value for _, enums in open_words(SCHEMA["$defs"]) for value in enums}
    for nearest, enums in open_words(SCHEMA["$defs"]):
        assert nearest in enums or " " in nearest, (nearest, enums)
    assert {"review", "superseded", "allow_once", "retrying"} <= listed


def open_words(value: Any) -> Iterator[tuple[str, list[str]]]:
    """What each open enum takes an unknown word for, and the words it lists."""
    if isinstance(value, dict):
        said = value.get("description")
        if isinstance(said, str) and said.startswith("unknown: "):
            known = value["anyOf"][0]
            name = known.get("$ref", "").removeprefix("#/$defs/")
            yield said.removeprefix("unknown: "), (SCHEMA["$defs"][name] if name else known)["enum"]
        for inner in value.values():
            yield from open_words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from open_words(inner)


# The core, and names that are free: no name of ours begins with `_`.
def test_twelve_methods_are_stable_and_names_with_an_underscore_are_free() -> None:
    methods = SCHEMA["x-kode"]["methods"]
    assert sorted(name for name in methods if methods[name]["stability"] == "stable") == [
        "kode/changeSet/decide",
        "kode/changeSet/undo",
        "kode/delta",
        "kode/event",
        "kode/permission/request",
        "kode/session/attach",
        "kode/session/detach",
        "kode/session/list",
        "kode/session/new",
        "kode/turn/cancel",
        "kode/turn/start",
        "kode/turn/steer",
    ]
    assert set(methods) >= STABLE
    members = {name for one in SCHEMA["$defs"].values() for name in one.get("properties", ())}
    assert {name for name in members if name.startswith("_")} == {"_meta"}


def test_the_schema_refuses_what_the_decoder_refuses(tmp_path: Path) -> None:
    cases = [
        Case(case.kind, value, case.received)
        for case in cases_of_examples()
        for value in spoiled(case.value)
    ]
    assert len(cases) > 5_000
    for case, said in zip(cases, verdicts(cases, tmp_path), strict=True):
        if case.received:
            assert (said is None) == case.fits, (case, said)
        else:  # of what it sends, the server promises more than a reader must insist on
            assert said is not None or case.fits, (case, said)
