"""The charts of a report as inline SVG: cost over time, and how long tasks took."""

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 16, 38
_MOST_POINTS = 300
_BARS = 24
_STEPS = 4


def charts(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return titles and pictures; what there is nothing to draw of is left out."""
    made: list[tuple[str, str]] = []
    done = sorted((one for one in rows if one["started_at"]), key=_end)
    for currency in sorted({cost["currency"] for one in done for cost in one["costs"]}):
        amounts = [_amount(one, currency) for one in done]
        made.append((f"Cost over time, {currency}", _growth([_end(one) for one in done], amounts)))
        made.append((f"Cost of a task, {currency}", _histogram([a for a in amounts if a])))
    if done:
        made.append(("Time of a task, seconds", _histogram([one["seconds"] for one in done])))
    return made


def _end(row: dict[str, Any]) -> float:
    return datetime.fromisoformat(row["started_at"]).timestamp() + row["seconds"]


def _amount(row: dict[str, Any], currency: str) -> float:
    return sum(cost["amount"] for cost in row["costs"] if cost["currency"] == currency)


def _growth(times: Sequence[float], amounts: Sequence[float]) -> str:
    """Draw the sum of the amounts as a line over the minutes since the first one."""
    total, points = 0.0, [(0.0, 0.0)]
    step = max(1, len(times) // _MOST_POINTS)
    for number, (time, amount) in enumerate(zip(times, amounts, strict=True), start=1):
        total += amount
        if number % step == 0 or number == len(times):
            points.append((time - times[0], total))
    across = points[-1][0] or 1.0
    line = " ".join(f"{_x(x / across):.1f},{_y(y / (total or 1.0)):.1f}" for x, y in points)
    area = f"{_x(0):.1f},{_y(0):.1f} {line} {_x(1):.1f},{_y(0):.1f}"
    return _picture(
        f'<polygon class="area" points="{area}"/><polyline class="line" points="{line}"/>',
        total,
        ("0", _clock(across)),
    )


def _histogram(values: Sequence[float]) -> str:
    """Draw how many values there are of each size."""
    most = max(values, default=0.0) or 1.0
    counts = [0] * _BARS
    for value in values:
        counts[min(_BARS - 1, int(value / most * _BARS))] += 1
    highest = -(-(max(counts) or 1) // _STEPS) * _STEPS
    wide = (_WIDTH - _LEFT - _RIGHT) / _BARS
    bars = "".join(
        f'<rect class="bar" x="{_x(n / _BARS) + 1:.1f}" y="{_y(count / highest):.1f}" '
        f'width="{wide - 2:.1f}" height="{_y(0) - _y(count / highest):.1f}" rx="2">'
        f"<title>{most * n / _BARS:.3g} to {most * (n + 1) / _BARS:.3g}: {count}</title></rect>"
        for n, count in enumerate(counts)
        if count
    )
    return _picture(bars, highest, ("0", f"{most:.3g}"))


def _x(part: float) -> float:
    return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)


def _y(part: float) -> float:
    return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _picture(inside: str, highest: float, ends: tuple[str, str]) -> str:
    """Return the picture with its grid; `highest` is the value at its top."""
    grid = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" '
        f'y1="{_y(part / _STEPS):.1f}" y2="{_y(part / _STEPS):.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{_y(part / _STEPS) + 5:.1f}" text-anchor="end">'
        f"{escape(_number(highest * part / _STEPS))}</text>"
        for part in range(_STEPS + 1)
    )
    low = _HEIGHT - _BOTTOM + 24
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{grid}{inside}'
        f'<text x="{_LEFT}" y="{low}">{escape(ends[0])}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{low}" text-anchor="end">{escape(ends[1])}</text></svg>'
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
