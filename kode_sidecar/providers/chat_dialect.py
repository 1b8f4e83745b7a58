"""The chat API of OpenAI as a dialect, whatever habits its host has. Sans-IO."""

from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.chat_request import PATH, ChatHabits, bearer_headers, encode_chat
from kode_sidecar.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.providers.openai_chat import ChatDecoder
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors


def chat_dialect(habits: ChatHabits, *, needs_done: bool) -> Dialect:
    """With `needs_done` only `[DONE]` ends an answer, otherwise a finish reason does, too."""

    def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
        return encode_chat(request, profile, habits)

    def new_decoder(
        request: ModelRequest, profile: ModelProfile, errors: ProviderErrors
    ) -> AnswerDecoder:
        return AnswerDecoder(ChatDecoder.of(request, profile, errors, needs_done=needs_done))

    return Dialect(PATH, bearer_headers, encode_request, new_decoder)
