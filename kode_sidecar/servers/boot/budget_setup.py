"""The user's budget for sessions: its limits, and today's cost according to their records."""

import os
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from msgspec.structs import asdict

from kode_sidecar.agent.sessions import UsageReport
from kode_sidecar.core.domain.budget import Budget
from kode_sidecar.core.kernel.contracts import Clock
from kode_sidecar.core.protocol.process import UsageGetParams
from kode_sidecar.core.settings import BudgetSettings
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.saver import Saver


def user_budget(settings: BudgetSettings | None) -> Budget | None:
    """Return the budget of the settings, if there is one."""
    return None if settings is None else Budget(**asdict(settings))


def day_only(budget: Budget | None) -> Budget | None:
    """Return the part of the user's budget that applies to jobs: a job sets its own turn limit."""
    if budget is None or budget.day is None:
        return None
    return Budget(currency=budget.currency, day=budget.day)


class SpendingToday:
    """Computes what all saved sessions have cost today (local date), from their records."""

    def __init__(self, storage_root: Path, clock: Clock) -> None:
        self._root = storage_root
        self._clock = clock

    def date(self) -> str:
        """Return today's date in the user's time zone."""
        return self._now().date().isoformat()

    async def __call__(self, currency: str) -> float:
        """Return today's cost in `currency`. Raises KodeError `Storage`."""
        if not os.path.isdir(self._root):
            return 0.0
        day, offset = self.date(), self._now().utcoffset() or timedelta()
        params = UsageGetParams(
            since=day, until=day, utc_offset_minutes=int(offset.total_seconds() // 60)
        )
        with closing(Saver()) as saver:
            total = (await UsageReport(ConversationStore(self._root, saver)).get(params)).total
        return next((cost.amount for cost in total.costs if cost.currency == currency), 0.0)

    def _now(self) -> datetime:
        return datetime.fromisoformat(self._clock.timestamp()).astimezone()
