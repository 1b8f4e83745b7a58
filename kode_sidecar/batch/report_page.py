"""`report.html`: one page that needs no network and no other file but the records it links to."""

import json
from collections.abc import Mapping
from html import escape
from math import floor, log10
from pathlib import Path
from typing import Any

from kode_sidecar.batch.charts import charts
from kode_sidecar.batch.page_text import SCRIPT, STYLE

_ORDER = ("completed", "incomplete", "failed", "blocked", "cancelled", "cut", "running", "pending")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_page(path: Path, report: Mapping[str, Any]) -> None:
    """Write the page of a report, given as plain data. Raises OSError."""
    text = "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Batch {escape(report['batch_id'])}</title><style>{STYLE}</style></head><body>",
            _head(report),
            _tiles(report),
            _bar(report["states"], report["tasks"]),
            _charts(report),
            _models(report["models"]) if len(report["models"]) > 1 else "",
            _table(report["states"]),
            f'<script type="application/json" id="rows">{_embedded(report["rows"])}</script>',
            f"<script>{SCRIPT}</script></body></html>",
        )
    )
    path.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _embedded(rows: list[Any]) -> str:
    """Return JSON that cannot end the element it stands in."""
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
    """Return an amount of money with so many digits that a small one is not shown as nothing."""
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
        for title, picture in charts(report["rows"])
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
