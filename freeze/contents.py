"""What goes into the frozen program and what stays out: data of `sidecar.spec`."""

from pathlib import Path
from pkgutil import iter_modules

import pygments.lexers
import rich._unicode_data

from kode_sidecar.servers.boot.wire_files import ACP_FILES, WIRE_FILES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kode_sidecar"

UNUSED = (
    *("multiprocessing", "tkinter", "unittest", "doctest", "pdb", "pydoc", "curses"),
    *("setuptools", "pip", "pytest", "_pytest", "hypothesis", "click"),
    *("trio", "uvloop", "winloop"),
    # The same in C, which the terminal does not feel, and what stands in for C that is here.
    *("wcwidth._wcwidth_c", "_pydecimal"),
    # The extra engine is for those who install the package; here it is a typed error.
    *("pydantic_ai", "pydantic", "pydantic_core", "openai", "anthropic", "dask", "distributed"),
)
"""What libraries of ours would use if it were there, or for things that we never ask of them."""

DATA = {
    "prompts": ROOT / "prompts",
    "kode_sidecar/jobs/batch/page": PACKAGE / "jobs" / "batch" / "page",
    "kode_sidecar/terminal/cli/template": PACKAGE / "terminal" / "cli" / "template",
    **{
        f"kode_sidecar/devtools/demo/{name}": PACKAGE / "devtools" / "demo" / name
        for name in ("job", "recording", "sample_project", "scripts", "unsaved")
    },
}
"""Folders whose files are opened by name: where they lie in the program, and here."""

WIRE = tuple(ROOT / "protocol" / name for name in (*WIRE_FILES, *ACP_FILES))
"""The contract's files, which lie in the folder `protocol` of the program, compressed."""


def own_modules() -> list[str]:
    """Every module of the package: nobody has to remember those that are imported late."""
    paths = [path.relative_to(ROOT).with_suffix("") for path in PACKAGE.rglob("*.py")]
    named = (path.parent if path.name == "__init__" else path for path in paths)
    return sorted(".".join(path.parts) for path in named)


def modules_by_name() -> list[str]:
    """Modules that the libraries of the chat import by a name that they put together."""
    return sorted(
        f"{package.__name__}.{module.name}"
        for package in (rich._unicode_data, pygments.lexers)
        for module in iter_modules(package.__path__)
    )
