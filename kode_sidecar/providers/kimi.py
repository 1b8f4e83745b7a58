"""Moonshot's dialect of the OpenAI chat API. Sans-IO.

Source: Moonshot chat completion reference and thinking-model guide, with what their servers
were seen to refuse.
"""

from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.chat_request import PATH, ChatHabits, bearer_headers, encode_chat
from kode_sidecar.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.providers.mfjs import normalize_schema
from kode_sidecar.providers.openai_chat import ChatDecoder
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors

_HABITS = ChatHabits(
    schema=normalize_schema,
    budget_name="max_completion_tokens",
    # Above 1 every Moonshot model refuses temperature and top_p.
    highest_sampling=1.0,
    takes_cache_key=True,
)


def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
    """See `Dialect`."""
    return encode_chat(request, profile, _HABITS)


def new_decoder(
    request: ModelRequest, profile: ModelProfile, errors: ProviderErrors
) -> AnswerDecoder:
    """See `Dialect`. By the vendor's rule only `[DONE]` ends an answer."""
    return AnswerDecoder(ChatDecoder.of(request, profile, errors, needs_done=True))


KIMI = Dialect(PATH, bearer_headers, encode_request, new_decoder)
