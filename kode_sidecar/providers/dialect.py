"""What a provider's language is: the seam between asking a model and how its host is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kode_sidecar.domain.model_event import ModelNotice
from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors


class EncodedRequest(NamedTuple):
    """The body of a request, and what of the wishes was left out of it."""

    body: bytes
    notices: tuple[ModelNotice, ...]


@dataclass(frozen=True)
class Dialect:
    """How requests are written and answers read. Sans-IO; keeps nothing between answers.

    `path` is appended to the base URL, which ends in `/v1`. `headers` makes those of every
    request from the key, names in lower case. `encode_request` gives equal bytes for equal
    requests, so that hosts can cache by prefix. `new_decoder` reads one answer.
    """

    path: str
    headers: Callable[[str], Mapping[str, str]]
    encode_request: Callable[[ModelRequest, ModelProfile], EncodedRequest]
    new_decoder: Callable[[ModelRequest, ModelProfile, ProviderErrors], AnswerDecoder]
