"""Sum the usage of all stored sessions (C5).

The sums come from the session files themselves: a second record of tokens could only disagree.
Lines without usage are never decoded, and sessions last written before the requested days are
skipped.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

from kode_sidecar.core.protocol.process import (
    UsageGetParams,
    UsageGetResult,
    UsageKey,
    UsageRow,
    UsageSum,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.spending import Spent, Totals

Row = tuple[str, ...]

# Fourteen hours, in minutes: no time zone is further ahead of UTC.
_MOST_OFFSET = 840


_FIELDS: Mapping[UsageKey, str] = {
    "day": "day",
    "model": "model",
    "session": "session_id",
    "turn": "turn_id",
    "message": "message_id",
}


@dataclass(frozen=True)
class UsageReport:
    """Sums usage by day, model, session, turn or message; reads on a thread."""

    store: ConversationStore

    async def get(self, params: UsageGetParams) -> UsageGetResult:
        """Return sums. Raises KodeError `SessionNotFound`, `InvalidParams`, `Storage`."""
        _check(params)
        return await asyncio.to_thread(self._sum_up, params)

    def _sum_up(self, params: UsageGetParams) -> UsageGetResult:
        zone = timezone(timedelta(minutes=params.utc_offset_minutes))
        answers: Counter[Row] = Counter()
        sums: defaultdict[Row, Totals] = defaultdict(Totals)
        unreadable = 0
        for session_id in self._sessions(params, zone):
            try:
                found = self.store.spending(session_id)
            except KodeError:
                if params.session_id is not None:
                    raise
                unreadable += 1
                continue
            for spent in found:
                day = _day_of(spent.created_at, zone)
                if (params.since or "") <= day <= (params.until or "9999-12-31"):
                    names = _names(spent, session_id, day)
                    row = tuple(names[key] for key in params.by)
                    answers[row] += 1
                    sums[row].add_answer(spent.usage, spent.cost, spent.cost_usd)
        total = Totals()
        for totals in sums.values():
            total.add(totals)
        fields = [_FIELDS[key] for key in params.by]
        return UsageGetResult(
            rows=tuple(
                UsageRow(**dict(zip(fields, row, strict=True)), **_sums(answers[row], sums[row]))
                for row in sorted(sums)
            ),
            total=UsageSum(**_sums(answers.total(), total)),
            unreadable_sessions=unreadable,
        )

    def _sessions(self, params: UsageGetParams, zone: timezone) -> Iterator[str]:
        if params.session_id is not None:
            yield params.session_id
            return
        if params.since is None:
            yield from self.store.list_ids()
            return
        for written, session_id in self.store.newest():
            # A session without a time is read anyway, and counted as unreadable there.
            if not written or _day_of(written, zone) >= params.since:
                yield session_id


def _check(params: UsageGetParams) -> None:
    for name, day in (("since", params.since), ("until", params.until)):
        if day is not None and not _is_day(day):
            text = f"Expected a day such as 2026-01-31 at `$.{name}`"
            raise KodeError("InvalidParams", text, details={"path": f"$.{name}"})
    if abs(params.utc_offset_minutes) > _MOST_OFFSET:
        path = "$.utcOffsetMinutes"
        text = f"Expected a number from -{_MOST_OFFSET} to {_MOST_OFFSET} at `{path}`"
        raise KodeError("InvalidParams", text, details={"path": path})


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _day_of(timestamp: str, zone: timezone) -> str:
    """Return the day of a timestamp in `zone`; for an invalid one, its first ten characters."""
    if zone.utcoffset(None) == timedelta(0) and timestamp.endswith("Z"):
        return timestamp[:10]
    try:
        return datetime.fromisoformat(timestamp).astimezone(zone).date().isoformat()
    except ValueError:
        return timestamp[:10]


def _names(spent: Spent, session_id: str, day: str) -> dict[UsageKey, str]:
    return {
        "day": day,
        "model": spent.model or "",
        "session": session_id,
        "turn": spent.turn_id,
        "message": spent.message_id,
    }


def _sums(answers: int, totals: Totals) -> dict[str, Any]:
    return {
        "answers": answers,
        "usage": totals.usage,
        "costs": totals.costs,
        "cost_usd": totals.cost_usd,
    }
