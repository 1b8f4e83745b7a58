"""What goes into the frozen program and what stays out: data of `sidecar.spec`."""

from pathlib import Path

from kode_sidecar.boot.installation import WIRE_FILES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kode_sidecar"

UNUSED = (
    *("multiprocessing", "tkinter", "unittest", "doctest", "pdb", "pydoc", "curses"),
    *("setuptools", "pip", "pytest", "_pytest", "hypothesis", "pygments", "click", "rich"),
    *("trio", "uvloop", "winloop"),
    # The extra engine is for those who install the package; here it is a typed error.
    *("pydantic_ai", "pydantic", "pydantic_core", "openai", "anthropic"),
)
"""What libraries of ours would use if it were there, or for things that we never ask of them."""

DATA = {
    "prompts": ROOT / "prompts",
    **{
        f"kode_sidecar/demo/{name}": PACKAGE / "demo" / name
        for name in ("job", "recording", "sample_project", "unsaved")
    },
}
"""Folders whose files are opened by name: where they lie in the program, and here."""

WIRE = tuple(ROOT / "protocol" / name for name in WIRE_FILES)
"""The generated files, which lie in the folder `protocol` of the program."""


def own_modules() -> list[str]:
    """Every module of the package: nobody has to remember those that are imported late."""
    paths = [path.relative_to(ROOT).with_suffix("") for path in PACKAGE.rglob("*.py")]
    named = (path.parent if path.name == "__init__" else path for path in paths)
    return sorted(".".join(path.parts) for path in named)
