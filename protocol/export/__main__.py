"""`python -m protocol.export`: write every generated file to its place in this checkout."""

from pathlib import Path

from protocol.export import SCHEMA_FILE, generate, generated_module

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Write them and print their names."""
    files = {f"protocol/{name}": data for name, data in generate().items()}
    schema = files[f"protocol/{SCHEMA_FILE}"]
    files["kode_sidecar/core/protocol/generated.py"] = generated_module(schema)
    files["editors/nvim/lua/kode/session_fold.lua"] = (ROOT / "protocol/fold/fold.lua").read_bytes()
    for name, data in files.items():
        (ROOT / name).write_bytes(data)
        print(name)


if __name__ == "__main__":
    main()
