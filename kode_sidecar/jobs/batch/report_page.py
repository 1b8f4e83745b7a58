"""Writes `report.html`: one page that needs no network, and no files but the records it links to.

Its style and script are in `page`. Texts of tasks are shown as text, never as HTML. The charts are
inline SVG.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from math import floor, log10
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parent / "page"
_ORDER = ("completed", "incomplete", "failed", "blocked", "cancelled", "cut", "running", "pending")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 16, 38
_MOST_POINTS = 300
_BARS = 24
_STEPS = 4


def write_page(path: Path, report: Mapping[str, Any]) -> None:
    """Write the page of a report, given as plain data. Raises OSError."""
    text = "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Batch {escape(report['batch_id'])}</title>",
            f"<style>{_part('style.css')}</style></head><body>",
            _head(report),
            _tiles(report),
            _bar(report["states"], report["tasks"]),
            _charts(report),
            _models(report["models"]) if len(report["models"]) > 1 else "",
            _table(report["states"]),
            f'<script type="application/json" id="rows">{_embedded(report["rows"])}</script>',
            f"<script>{_part('script.js')}</script></body></html>",
        )
    )
    path.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _part(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _embedded(rows: list[Any]) -> str:
    """Return JSON that cannot close the HTML element that holds it."""
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _head(report: Mapping[str, Any]) -> str:
    early = (
        f'<p class="early">Ended early: {escape(report["stopped"])}</p>'
        if report["stopped"]
        else ""
    )
    return (
        f"<header><h1>Batch {escape(report['batch_id'])}</h1>"
        f"<p>{escape(Path(report['config_path']).name)} · begun {_time(report['created_at'])}</p>"
        f"{early}</header>"
    )


def _time(stamp: str) -> str:
    return f"{escape(stamp[:10])} {escape(stamp[11:16])} UTC"


def _tiles(report: Mapping[str, Any]) -> str:
    done = report["states"].get("completed", 0)
    share = f"{done / report['tasks']:.0%}" if report["tasks"] else "–"
    usage, budget = report["usage"], report["budget"]
    tiles = [
        (f"{done:,} of {report['tasks']:,}", f"tasks completed, {share}"),
        (_money(report["costs"]), f"cost{f' of {_money([budget])}' if budget else ''}"),
        (_short(usage["inputTokens"]), "tokens in"),
        (_short(usage["outputTokens"]), "tokens out"),
        (
            _span(report["seconds"]),
            f"of work in {report['runs']:,} {'run' if report['runs'] == 1 else 'runs'}",
        ),
    ]
    inside = "".join(f"<div><b>{escape(big)}</b>{escape(small)}</div>" for big, small in tiles)
    return f'<section class="tiles">{inside}</section>'


def amount(number: float) -> str:
    """Return an amount of money with enough digits that a small one is not shown as zero."""
    if number == 0 or number >= 1:
        return f"{number:,.2f}"
    return f"{number:.{max(4, 1 - floor(log10(number)))}f}"


def _money(costs: list[Any]) -> str:
    return " + ".join(f"{amount(one['amount'])} {one['currency']}" for one in costs) or "–"


def _short(count: int) -> str:
    for size, name in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if count >= size:
            return f"{count / (1_000 if name == 'k' else size):.1f} {name}"
    return f"{count:,}"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def _bar(states: Mapping[str, int], tasks: int) -> str:
    parts = "".join(
        f'<i class="{name}" style="width:{states[name] / tasks:.4%}" title="{states[name]} {name}">'
        "</i>"
        for name in _ORDER
        if states.get(name)
    )
    return f'<div class="bar-of-states">{parts}</div>'


def _charts(report: Mapping[str, Any]) -> str:
    drawn = "".join(
        f"<figure><figcaption>{escape(title)}</figcaption>{picture}</figure>"
        for title, picture in _drawn(report["rows"])
    )
    return f'<section class="charts">{drawn}</section>'


def _models(models: list[Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(one['model'] or 'script')}</td><td class=n>{one['tasks']:,}</td>"
        f"<td class=n>{one['completed']:,}</td><td class=n>{_span(one['seconds'])}</td>"
        f"<td class=n>{_short(one['usage']['inputTokens'])}</td>"
        f"<td class=n>{_short(one['usage']['outputTokens'])}</td>"
        f"<td class=n>{escape(_money(one['costs']))}</td></tr>"
        for one in models
    )
    heads = "".join(
        f"<th{' class=n' if number else ''}>{name}</th>"
        for number, name in enumerate(
            ("model", "tasks", "completed", "time", "tokens in", "tokens out", "cost")
        )
    )
    return f"<h2>Models</h2><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _table(states: Mapping[str, int]) -> str:
    buttons = "".join(
        f'<button data-state="{name}" aria-pressed="false"><i class="{name}"></i>{name} '
        f"{states[name]:,}</button>"
        for name in _ORDER
        if states.get(name)
    )
    return (
        '<h2>Tasks</h2><div class="filters">'
        '<input id="words" type="search" placeholder="Filter by id, model, error …" '
        f'aria-label="Filter">{buttons}<span id="count"></span></div>'
        '<div class="wide"><table id="tasks"><thead><tr></tr></thead><tbody></tbody></table></div>'
        '<button id="more" hidden>Show more</button>'
        "<noscript>The table needs JavaScript; report.md and report.json have the same.</noscript>"
    )


def _drawn(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the charts with their titles; charts without data are left out."""
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
    """Draw the distribution of the values."""
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
    """Return the SVG with its grid; `highest` is the value at its top."""
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
