"""A Windows library of one function that only forwards to another library's.

Programs made with Rust 1.78 and newer, such as `rg.exe`, take random bytes from `ProcessPrng` in
`bcryptprimitives.dll`. Wine has that library from version 9 on; Debian 12 has version 8. The
function `SystemFunction036` (RtlGenRandom) takes the same arguments and does the same. Source:
Microsoft's "PE Format": headers, one section, an export table with a forwarder.
"""

import struct

LIBRARY = "bcryptprimitives.dll"
_FUNCTION = "ProcessPrng"
_FORWARD = "ADVAPI32.SystemFunction036"

_ALIGN = 0x1000  # of the section in memory; in the file it is _FILE_ALIGN
_FILE_ALIGN = 0x200
_AMD64, _DLL = 0x8664, 0x2022  # executable, large addresses, a library


def forwarder_dll() -> bytes:
    """The bytes of the file."""
    exports = _exports()
    raw = exports.ljust(_FILE_ALIGN, b"\0")
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    file_header = struct.pack("<HHIIIHH", _AMD64, 1, 0, 0, 0, 240, _DLL)
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII",
        *(0x20B, 0, 0, 0, len(raw), 0, 0, _ALIGN),  # magic, linker, sizes, no entry point, base
        *(0x180000000, _ALIGN, _FILE_ALIGN),
        *(6, 0, 0, 0, 6, 0, 0),  # versions
        *(2 * _ALIGN, _FILE_ALIGN, 0, 3, 0x160),  # image, headers, checksum, console, ASLR and NX
        *(0x100000, 0x1000, 0x100000, 0x1000, 0, 16),
    )
    directories = struct.pack("<II", _ALIGN, len(exports)) + bytes(15 * 8)
    section = struct.pack(
        "<8sIIIIIIHHI", b".edata", len(raw), _ALIGN, len(raw), _FILE_ALIGN, 0, 0, 0, 0, 0x40000040
    )
    headers = dos + b"PE\0\0" + file_header + optional + directories + section
    return headers.ljust(_FILE_ALIGN, b"\0") + raw


def _exports() -> bytes:
    """The export table, at address `_ALIGN`. An address inside of it is a forwarder's name."""
    strings = [LIBRARY.encode(), _FUNCTION.encode(), _FORWARD.encode()]
    begin = _ALIGN + 40
    functions, names, ordinals = begin, begin + 4, begin + 8
    places = [begin + 10]
    for string in strings:
        places.append(places[-1] + len(string) + 1)
    table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, places[0], 1, 1, 1, functions, names, ordinals)
    pointers = struct.pack("<IIH", places[2], places[1], 0)
    return table + pointers + b"".join(string + b"\0" for string in strings)
