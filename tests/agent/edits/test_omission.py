"""A line that stands for code which was left out, and lines that only look like it."""

import pytest

from kode_sidecar.core.text.omission import omission


@pytest.mark.parametrize(
    "line",
    [
        "// ... existing code ...",
        "//...existing code...",
        "# ... rest of the code ...",
        "# rest of the code remains unchanged",
        "# Rest of the class stays the same",
        "... rest unchanged ...",
        "    /* ... other methods ... */",
        "<!-- ... existing content ... -->",
        "{/* ... rest of component ... */}",
        "# … (rest of file unchanged)",
        "// existing code...",
        "# [... rest of the implementation ...]",
        "-- ... (remaining rows unchanged)",
        "# ... same as before ...",
        "# ...其余代码不变...",
        "// 其余代码保持不变",
        "// ……其余部分同上……",
        "# 此处省略",
        "(rest of methods ...)",
        "// (unchanged code ...)",
        "// ...",
        "    # …",
        "/* ... */",
        "[rest of the class ...]",
        "// ... keep the other handlers ...",
        "# ... leave all imports as they are",
        "<!-- rest of the page unchanged -->",
        "# [120 lines unchanged]",
        "// ... 7 more lines omitted ...",
        "/* same as before */",
        "# unchanged",
        "[rest of the file unchanged]",
        "（其余代码不变）",
        "# ... more tests ...",
    ],
)
def test_an_omission(line: str) -> None:
    assert omission(f"a = 1\n{line}\nb = 2\n") == line.strip()
    assert omission(f"a = 1\n{line}\nb = 2\n", known=f"{line.strip()}\n") is None


@pytest.mark.parametrize(
    "line",
    [
        "...",
        "# loading more...",
        "print('...')",
        "The rest is silence...",
        "# keep going...",
        "return existing_code(...)",
        "...rest,",
        "...rest };",
        "... other = Point()",
        ">>> a = [\n... other\n... ]",
        "...rest",
        "{...existing}",
        "const a = {...other};",
        "# the rest of the line is the comment",
        "# handle the remaining cases here",
        "Loading the remaining content",
        "# 其他",
        "# 以下是测试",
        "## Existing code style",
        "(...)",
        "[...]",
        "# ................",
        "# see the rest of the code in b.py",
        "// the same code is used on Windows",
        "# ...but even then we keep running until the supplied provider ends...",
        "(rest, remaining) = parts",
    ],
)
def test_no_omission(line: str) -> None:
    assert omission(line) is None
