"""Lists all dialects by the name that a profile uses. Sans-IO.

Sources: Moonshot's chat completion reference and thinking-model guide, with what their servers
were seen to refuse; OpenAI's references of chat completions and responses.
"""

from collections.abc import Mapping

from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.infrastructure.providers.anthropic_request import ANTHROPIC_MESSAGES
from kode_sidecar.infrastructure.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder, KimiDecoder
from kode_sidecar.infrastructure.providers.openai_request import (
    PATH,
    ChatWishes,
    bearer_headers,
    encode_chat,
)
from kode_sidecar.infrastructure.providers.profiles import DialectName, ModelProfile
from kode_sidecar.infrastructure.providers.responses_request import OPENAI_RESPONSES


def chat_dialect(wishes: ChatWishes, decoder: type[ChatDecoder]) -> Dialect:
    """Make a chat dialect."""

    def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
        return encode_chat(request, profile, wishes)

    return Dialect(PATH, bearer_headers, encode_request, decoder.of)


KIMI = chat_dialect(
    ChatWishes(
        budget_name="max_completion_tokens",
        # Above 1 every Moonshot model refuses temperature and top_p.
        highest_sampling=1.0,
        takes_cache_key=True,
    ),
    KimiDecoder,
)


OPENAI_CHAT = chat_dialect(
    ChatWishes(budget_name="max_tokens", highest_sampling=2.0, takes_cache_key=False), ChatDecoder
)


DIALECTS: Mapping[DialectName, Dialect] = {
    "kimi": KIMI,
    "openai_chat": OPENAI_CHAT,
    "openai_responses": OPENAI_RESPONSES,
    "anthropic_messages": ANTHROPIC_MESSAGES,
}
