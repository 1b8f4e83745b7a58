"""What Windows shows of the program in its properties (VERSIONINFO resource)."""

import re

from kode_sidecar import __version__

_ENGLISH, _UNICODE = 0x0409, 1200


def version_resource() -> str:
    """In the words that PyInstaller reads from a version file."""
    numbers = (*map(int, re.findall(r"\d+", __version__)[:3]), 0)
    texts = {
        "CompanyName": "kode-sidecar",
        "FileDescription": "kode-sidecar: the agent back end an editor spawns",
        "FileVersion": __version__,
        "InternalName": "kode-sidecar",
        "LegalCopyright": "MIT License",
        "OriginalFilename": "kode-sidecar.exe",
        "ProductName": "kode-sidecar",
        "ProductVersion": __version__,
    }
    strings = ", ".join(f"StringStruct({name!r}, {text!r})" for name, text in texts.items())
    return (
        f"VSVersionInfo(ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}), kids=["
        f"StringFileInfo([StringTable('{_ENGLISH:04X}{_UNICODE:04X}', [{strings}])]), "
        f"VarFileInfo([VarStruct('Translation', [{_ENGLISH}, {_UNICODE}])])])\n"
    )
