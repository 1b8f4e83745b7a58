"""The chat API of OpenAI as most hosts serve it. Sans-IO.

Only what they all accept is sent: fields that some refuse, such as `prompt_cache_key`, stay out.
"""

from kode_sidecar.providers.chat_dialect import chat_dialect
from kode_sidecar.providers.chat_request import ChatHabits
from kode_sidecar.providers.tool_schema import object_schema

OPENAI_CHAT = chat_dialect(
    ChatHabits(
        schema=object_schema,
        budget_name="max_tokens",
        highest_sampling=2.0,
        takes_cache_key=False,
    ),
    needs_done=False,
)
