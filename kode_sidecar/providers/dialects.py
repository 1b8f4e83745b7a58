"""The dialects there are, by the name that a profile carries."""

from collections.abc import Mapping

from kode_sidecar.providers.anthropic_request import ANTHROPIC_MESSAGES
from kode_sidecar.providers.dialect import Dialect
from kode_sidecar.providers.kimi import KIMI
from kode_sidecar.providers.openai_compatible import OPENAI_CHAT
from kode_sidecar.providers.profiles import DialectName

DIALECTS: Mapping[DialectName, Dialect] = {
    "kimi": KIMI,
    "openai_chat": OPENAI_CHAT,
    "anthropic_messages": ANTHROPIC_MESSAGES,
}
