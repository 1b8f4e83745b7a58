"""`/usage`: tokens and money of this session and of today."""

from datetime import datetime

from kode_sidecar.chat.words import Words
from kode_sidecar.client.connection import Client
from kode_sidecar.client.session_view import Json
from kode_sidecar.client.terminal import Terminal


async def show_usage(client: Client, terminal: Terminal, words: Words, session_id: str) -> None:
    """A line for each, and below it one for each model where there were several.

    Raises RpcError and ConnectionLost.
    """
    here = datetime.now().astimezone()
    offset = here.utcoffset()
    today = here.strftime("%Y-%m-%d")
    minutes = int(offset.total_seconds() // 60) if offset else 0
    asked: tuple[tuple[str, Json], ...] = (
        (words.usage_session, {"sessionId": session_id}),
        (words.usage_today, {"since": today, "until": today, "utcOffsetMinutes": minutes}),
    )
    for name, params in asked:
        told = await client.request("kode/usage/get", {**params, "by": ["model"]})
        terminal.line(_line(words, name, told["total"]))
        if len(told["rows"]) > 1:
            for row in told["rows"]:
                terminal.line("  " + _line(words, row.get("model", "—"), row), "dim")


def _line(words: Words, name: str, counted: Json) -> str:
    usage = counted["usage"]
    text = words.usage.format(
        name=name,
        answers=counted["answers"],
        input=usage.get("inputTokens", 0),
        cached=usage.get("cachedTokens", 0),
        output=usage.get("outputTokens", 0),
    )
    costs = [f"{cost['amount']:.4f} {cost['currency']}" for cost in counted.get("costs", ())]
    return " · ".join([text, *costs])
