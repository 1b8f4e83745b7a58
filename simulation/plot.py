"""Curves over time as a table and as an SVG, by hand: a plot needs no library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT, _LEFT, _GAP = 720, 90, 130, 34
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#7f7f7f")
_ROWS = 12


@dataclass(frozen=True)
class Sample:
    """What was measured `at` so many seconds, by name."""

    at: float
    values: Mapping[str, float]


def table(samples: Sequence[Sample]) -> str:
    """Return about a dozen of the samples as Markdown."""
    names = list(samples[0].values)
    step = max(len(samples) // _ROWS, 1)
    rows = [
        [f"{sample.at:.0f}", *(f"{sample.values[name]:.1f}".removesuffix(".0") for name in names)]
        for sample in [*samples[::step], samples[-1]]
    ]
    lines = [["seconds", *names], ["---"] * (len(names) + 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def drawing(samples: Sequence[Sample]) -> str:
    """Return one curve below the other, each from nought to its largest."""
    names = list(samples[0].values)
    height = len(names) * (_HEIGHT + _GAP) + _GAP
    last = max(samples[-1].at, 1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for at, name in enumerate(names):
        top = _GAP / 2 + at * (_HEIGHT + _GAP)
        most = max(sample.values[name] for sample in samples) or 1.0
        points = " ".join(
            f"{_LEFT + sample.at / last * _WIDTH:.1f},"
            f"{top + _HEIGHT - sample.values[name] / most * _HEIGHT:.1f}"
            for sample in samples
        )
        parts += [
            f'<text x="8" y="{top + 14:.0f}">{name}</text>',
            f'<text x="8" y="{top + 30:.0f}" fill="#666">at most {most:.1f}</text>',
            f'<rect x="{_LEFT}" y="{top:.0f}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" '
            'stroke="#ddd"/>',
            f'<polyline fill="none" stroke="{_COLOURS[at % len(_COLOURS)]}" points="{points}"/>',
        ]
    parts.append(f'<text x="{_LEFT}" y="{height - 6}" fill="#666">0 to {last:.0f} seconds</text>')
    return "\n".join([*parts, "</svg>", ""])
