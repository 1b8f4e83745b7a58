"""A figure of several programs, its limit, and the table of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from benchmarks.programs import MINIMAL_LOOP, RAW_LOOP, SIDECAR

Verdict = Literal["ok", "MISS", "n/a", "-"]


@dataclass(frozen=True)
class Figure:
    """One line of the table. A value that could not be had on this machine is None.

    `values` are by program. `most_ratio` bounds the sidecar's value divided by `base` (the
    minimal loop's value unless given), `most` the sidecar's value itself.
    """

    name: str
    unit: str
    values: Mapping[str, float | None]
    most_ratio: float | None = None
    most: float | None = None
    base: float | None = None
    base_name: str = ""

    @property
    def ratio(self) -> float | None:
        """The sidecar against its base."""
        base = self.values.get(MINIMAL_LOOP) if self.base is None else self.base
        value = self.values.get(SIDECAR)
        return value / base if value is not None and base else None

    @property
    def verdict(self) -> Verdict:
        """`-` without a limit."""
        if self.most_ratio is None and self.most is None:
            return "-"
        value, limit = self.values.get(SIDECAR), self.most
        if self.most_ratio is not None:
            value, limit = self.ratio, self.most_ratio
        if value is None or limit is None:
            return "n/a"
        return "ok" if value <= limit else "MISS"

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "name": self.name,
            "unit": self.unit,
            "values": dict(self.values),
            "ratio": self.ratio,
            "mostRatio": self.most_ratio,
            "most": self.most,
            "base": self.base,
            "baseName": self.base_name or None,
            "verdict": self.verdict,
        }


Samples = dict[str, list[float | None]]
"""By program."""


def medians(samples: Mapping[str, Sequence[float | None]]) -> dict[str, float | None]:
    """The median of each program's samples; None where one is missing."""
    return {name: _median(values) for name, values in samples.items()}


def quantile(values: Sequence[float], part: float) -> float:
    """The value that `part` of all do not exceed."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def table(figures: Sequence[Figure]) -> str:
    """All figures, one a line."""
    header = ("figure", SIDECAR, "minimal loop", "raw loop", "ratio", "limit", "")
    rows = [header, *map(_cells, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, 6) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _cells(figure: Figure) -> tuple[str, ...]:
    name = figure.name
    if figure.base is not None:
        name += f" ({figure.base_name}: {_number(figure.base)})"
    limit = "-"
    if figure.most_ratio is not None:
        limit = f"{figure.most_ratio:g} x"
    elif figure.most is not None:
        limit = f"{figure.most:g} {figure.unit}"
    ratio = figure.ratio
    return (
        name,
        *(_value(figure, program) for program in (SIDECAR, MINIMAL_LOOP, RAW_LOOP)),
        "-" if ratio is None else f"{ratio:.2f} x",
        limit,
        figure.verdict,
    )


def _value(figure: Figure, program: str) -> str:
    if program not in figure.values:
        return "-"
    value = figure.values[program]
    return "n/a" if value is None else f"{_number(value)} {figure.unit}"


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:.0f}"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 1_000 else 0
    return f"{value:,.{digits}f}"
