"""Moonshot's dialect of the OpenAI chat API. Sans-IO.

Source: Moonshot chat completion reference and thinking-model guide, with what their servers
were seen to refuse.
"""

from kode_sidecar.providers.chat_dialect import chat_dialect
from kode_sidecar.providers.chat_request import ChatHabits
from kode_sidecar.providers.mfjs import normalize_schema

KIMI = chat_dialect(
    ChatHabits(
        schema=normalize_schema,
        budget_name="max_completion_tokens",
        # Above 1 every Moonshot model refuses temperature and top_p.
        highest_sampling=1.0,
        takes_cache_key=True,
    ),
    needs_done=True,
)
