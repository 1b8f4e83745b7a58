"""What hosts say of a request that is longer than their model reads. Sans-IO.

Each of these was taken from the source or the documents of a host. Many name the window itself,
which is worth remembering where nobody knew it.
"""

import re
from typing import NamedTuple

_SAID = (
    # OpenAI, and after it vLLM, DeepSeek, OpenRouter and most others.
    r"context_length_exceeded|maximum context length(?: is| of)? ?(?P<openai>[\d,]+)?",
    r"exceeds the context window|context window exceeds|context window",
    r"reduce the length of the (?:messages|input|prompt)",
    # Moonshot
    r"model token limit(?: ?: ?(?P<kimi>[\d,]+))?|input token length too long",
    # Anthropic, and Bedrock
    r"prompt is too long(?:: [\d,]+ tokens > (?P<anthropic>[\d,]+))?",
    r"exceed context limit(?:: [\d,]+ \+ [\d,]+ > (?P<claude>[\d,]+))?",
    r"input is too long|too many (?:input )?tokens(?!.{0,20}wait)",
    # llama.cpp
    r"exceed_context_size|available context size(?: \((?P<llama>[\d,]+))?",
    r"input is too large to process",
    # LM Studio
    r"context length of (?:only )?(?P<lmstudio>[\d,]+)|context the overflows|context overflow",
    r"greater than the context length",
    # Gemini
    r"token count.{0,60}exceeds the maximum number of tokens(?: allowed)?"
    r"(?: ?\(?(?P<gemini>[\d,]+))?",
    # GLM
    r"prompt exceeds max length|(?:prompt|输入).{0,12}(?:超长|过长)|超出.{0,12}(?:上下文|最大长度)",
    # Qwen
    r"range of input length should be \[\d+, ?(?P<qwen>[\d,]+)",
    # Mistral, xAI, SGLang, TGI
    r"too large for model with (?P<mistral>[\d,]+) maximum context",
    r"maximum prompt length is (?P<xai>[\d,]+)",
    r"longer than the model's context length(?: \((?P<sglang>[\d,]+))?",
    r"inputs`? (?:tokens .{0,40})?must (?:have less than|be <=) (?P<tgi>[\d,]+)",
)
_OVERFLOW = re.compile("|".join(_SAID), re.IGNORECASE | re.DOTALL)
# No model reads less than this: a smaller number means something else.
_SMALLEST_WINDOW = 512


class Overflow(NamedTuple):
    """A refusal for the length of a request; `window` in tokens, if the host names it."""

    window: int | None


def overflow_in(said: str) -> Overflow | None:
    """Return what the words say of a request's length; None when it is about something else."""
    found = False
    for match in _OVERFLOW.finditer(said):
        found = True
        for number in filter(None, match.groups()):
            digits = number.replace(",", "")[:12]
            if digits and int(digits) >= _SMALLEST_WINDOW:
                return Overflow(int(digits))
    return Overflow(None) if found else None
