"""`python -m protocol.export`: write every generated file to its place in this checkout."""

from pathlib import Path

from protocol.export import SCHEMA_FILE, generate, generated_module
from protocol.export.hands import with_table

ROOT = Path(__file__).resolve().parents[2]
FOLDS = {
    "fold.lua": "editors/nvim/lua/kode/session_fold.lua",
    "fold.py": "kode_sidecar/terminal/client/fold.py",
}
"""Reducers of `protocol/fold`, and where our own clients have their copy."""


def main() -> None:
    """Write them and print their names."""
    files = {f"protocol/{name}": data for name, data in generate().items()}
    schema = files[f"protocol/{SCHEMA_FILE}"]
    files["kode_sidecar/core/protocol/generated.py"] = generated_module(schema)
    for fold, place in FOLDS.items():
        files[place] = (ROOT / "protocol" / "fold" / fold).read_bytes()
    readme = (ROOT / "protocol" / "README.md").read_text(encoding="utf-8")
    files["protocol/README.md"] = with_table(readme, ROOT).encode()
    for name, data in files.items():
        (ROOT / name).write_bytes(data)
        print(name)


if __name__ == "__main__":
    main()
