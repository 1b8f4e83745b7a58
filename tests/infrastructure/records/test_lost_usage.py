"""What attempts used that came to nothing is kept, and counts (C5)."""

from kode_sidecar.core.domain.message import Cost, LostUsage, Message, Usage
from kode_sidecar.infrastructure.records.message_record import decode_message, encode_message
from kode_sidecar.infrastructure.records.spending import Totals, read_spending

LOST = LostUsage(
    usage=Usage(input_tokens=100, output_tokens=5, total_tokens=105),
    cost=Cost(0.25, "CNY"),
    estimated=True,
)
TOLD = Usage(input_tokens=100, output_tokens=10, total_tokens=110)


def answer(**fields: object) -> Message:
    known = {"usage": TOLD, "cost": Cost(0.5, "CNY"), "lost": LOST, **fields}
    return Message(id="m", session_id="s", role="assistant", **known)  # type: ignore[arg-type]


def test_it_survives_the_disk() -> None:
    for message in (answer(), answer(usage=None, cost=None), answer(lost=None)):
        assert decode_message(encode_message(message)) == message


def test_it_counts_in_the_totals_and_in_the_records() -> None:
    totals = Totals([answer()])
    assert totals.usage.total_tokens == 215
    assert totals.cost == Cost(0.75, "CNY")
    (spent,) = read_spending([encode_message(answer())])
    assert (spent.usage.total_tokens, spent.cost) == (215, Cost(0.75, "CNY"))
    (failed,) = read_spending([encode_message(answer(usage=None, cost=None))])
    assert (failed.usage.total_tokens, failed.cost) == (105, Cost(0.25, "CNY"))


def test_amounts_of_two_currencies_have_no_sum() -> None:
    both = LOST.plus(LostUsage(usage=Usage(), cost=Cost(1.0, "USD"), cost_usd=1.0))
    assert both.cost is None
    assert both.cost_usd == 1.0
    assert LOST.plus(None) is LOST
