"""The declarations as a TypeScript compiler sees them, at its strictest."""

import re
from pathlib import Path

from kode_sidecar.core.protocol.methods import METHODS
from tests.support.node_tools import node_modules, run_node
from tests.support.protocol_files import FOLDER

HERE = Path(__file__).parent
STRICT = [
    *("--strict", "--noEmit", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"),
    *(
        "--noUnusedLocals",
        "--noImplicitReturns",
        "--noFallthroughCasesInSwitch",
    ),
    *("--target", "es2022", "--module", "nodenext", "--pretty", "false"),
]


# E1
def test_a_client_compiles_against_the_declarations() -> None:
    tsc = node_modules() / "typescript" / "bin" / "tsc"
    done = run_node(str(tsc), *STRICT, str(HERE / "typed_client.ts"), str(FOLDER / "kode.d.ts"))
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0


def test_every_method_is_in_a_map_with_its_types() -> None:
    text = (FOLDER / "kode.d.ts").read_text(encoding="utf-8")
    for method in METHODS:
        types = [method.params.__name__, *([method.result.__name__] if method.result else [])]
        assert f'  "{method.name}": [{", ".join(types)}];\n' in text


def test_what_has_a_docstring_has_a_comment() -> None:
    text = (FOLDER / "kode.d.ts").read_text(encoding="utf-8")
    bare = re.findall(r"(?<!\*/)\n(export (?:interface|type) \w+)", text)
    assert bare == []
