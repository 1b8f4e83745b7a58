"""The chat API of OpenAI as most hosts serve it. Sans-IO.

Only what they all accept is sent: fields that some refuse, such as `prompt_cache_key`, stay out.
"""

from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.chat_request import PATH, ChatHabits, bearer_headers, encode_chat
from kode_sidecar.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.providers.openai_chat import ChatDecoder
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors
from kode_sidecar.providers.tool_schema import object_schema

_HABITS = ChatHabits(
    schema=object_schema,
    budget_name="max_tokens",
    highest_sampling=2.0,
    takes_cache_key=False,
)


def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
    """See `Dialect`."""
    return encode_chat(request, profile, _HABITS)


def new_decoder(
    request: ModelRequest, profile: ModelProfile, errors: ProviderErrors
) -> AnswerDecoder:
    """See `Dialect`. A finish reason without `[DONE]` ends an answer, too."""
    return AnswerDecoder(ChatDecoder.of(request, profile, errors, needs_done=False))


OPENAI_CHAT = Dialect(PATH, bearer_headers, encode_request, new_decoder)
