"""Where we mean to differ from the official SDKs, and why. Stream → reason.

The SDKs are written for their own vendor's servers; these are the servers of others, and broken
connections. openai 3.54, anthropic 2.12.
"""

_STRICT_JSON = "the SDK gives up on the first event that is no strict JSON; we read or skip it"
_NOTHING = "the SDK fails an assertion where nothing came; we say that the answer is incomplete"
_ONLY_STREAMS = "the SDK takes the body for an event stream and finds nothing in it"
_NULLS = "the SDK cannot take null where its types have none"
_PARTS = "the SDK knows content as text only"
_DETAILS = "the SDK merges lists by an index, which these have not"
_TAGS = "the SDK leaves the reasoning in the text"
_INDEX = "the SDK puts calls where their index says, and these have none or another"
_REUSED = "the SDK keys calls by index alone and glues ids, names and arguments together"
_REPEATED = "the SDK appends ids and names as if they were pieces"
_USAGE = "the SDK reads usage and its cached tokens where OpenAI puts them, and nowhere else"
_SURROGATES = "the SDK keeps the halves of a character apart, which no UTF-8 can hold"
_ERROR = "the SDK knows errors in one form only, and takes this one for a part of the answer"
_LEAKED = "the SDK does not know Kimi's own tool tokens"
_NAMELESS = "the SDK hands out a call that nobody can run; we ask again"
_TWO_ANSWERS = "the SDK glues two answers together"
_PARTIAL_INPUT = "the SDK completes cut arguments; we keep them as they came, and never run them"

OPENAI: dict[str, str] = {
    "framing: an event with only a retry line": "the SDK reads the empty data of such an event",
    "framing: a field without a colon, and one we do not know": (
        "the SDK reads the empty data of such an event"
    ),
    "framing: a byte order mark": "the SDK loses the first event to the mark",
    "framing: the last chunk lacks its empty line": (
        "the SDK drops what no empty line ends; we try it, for JSON tells whether it is whole"
    ),
    "framing: cut in the middle of a character": "the SDK decodes before it knows the event whole",
    "framing: white space around the end mark": "the SDK compares the end mark letter by letter",
    "framing: an empty body": _NOTHING,
    "framing: only comments": _NOTHING,
    "framing: a whole completion instead": _ONLY_STREAMS,
    "framing: a whole completion, cut": _ONLY_STREAMS,
    "text: choices null": _NULLS,
    "text: delta null": _NULLS,
    "text: content as a list of parts": _PARTS,
    "text: thinking part with a plain text": _PARTS,
    "text: a refusal": "the SDK keeps a refusal apart; a user has to see it all the same",
    "text: a character cut in two": _SURROGATES,
    "text: half a character at the end": _SURROGATES,
    "text: half a character before a call": _SURROGATES,
    "text: a raw control character": _STRICT_JSON,
    "text: bytes that are not UTF-8": _STRICT_JSON,
    "text: one bad event": _STRICT_JSON,
    "text: an event with the next one glued to it": _STRICT_JSON,
    "text: two bad events apart": _STRICT_JSON,
    "text: two bad events in a row": _STRICT_JSON,
    "text: a second completion glued to the first": _TWO_ANSWERS,
    "text: the answer begins anew in the middle": _TWO_ANSWERS,
    "reasoning: with its details beside it": _DETAILS,
    "reasoning: as details alone": _DETAILS,
    "reasoning: as tags in the text": _TAGS,
    "reasoning: as empty tags": _TAGS,
    "reasoning: tags that never close": _TAGS,
    "tools: arguments as an object": _NULLS,
    "tools: id and name in every fragment": _REPEATED,
    "tools: the id never comes": "the SDK hands out a call that nobody can answer; we name it",
    "tools: the name never comes": _NAMELESS,
    "tools: two under one index": _REUSED,
    "tools: two of one tool under one index": _REUSED,
    "tools: the index is missing, each entry a call": _INDEX,
    "tools: the index is missing in fragments": _INDEX,
    "tools: indexes from 1": _INDEX,
    "usage: in the choice, Kimi's": _USAGE,
    "usage: Groq's": _USAGE,
    "usage: cached at the top of usage": _USAGE,
    "usage: cached as cache hits": _USAGE,
    "usage: cached as cache reads, outside the prompt": _USAGE,
    "usage: null counts for nothing": "the SDK lets null replace what was counted before",
    "error: in the choice": _ERROR,
    "error: only a finish reason": _ERROR,
    "error: without the word error": _ERROR,
    "leak: in the text": _LEAKED,
    "leak: in the text, letter by letter": _LEAKED,
    "leak: in the reasoning": _LEAKED,
    "leak: in the reasoning, letter by letter": _LEAKED,
    "leak: two of them": _LEAKED,
    "damage: an event in the middle of a call": _STRICT_JSON,
    "damage: bytes of a call that are not UTF-8": _STRICT_JSON,
    "damage: half a character in a call": _SURROGATES,
    "damage: an event before a call": _STRICT_JSON,
    "damage: an event after the calls, before the end mark": _STRICT_JSON,
    "preset: kimi-coding": _USAGE,
    "preset: kimi-coding-intl": _USAGE,
    "identity: an id for each chunk, begun anew": _TWO_ANSWERS,
    "identity: an id for each chunk, a second answer after the end": _TWO_ANSWERS,
    "identity: the role of the second answer comes without its id": _TWO_ANSWERS,
}

ANTHROPIC: dict[str, str] = {
    "blocks: the start of a block is missing": "the SDK has no block to grow; we infer its kind",
    "blocks: indexes are missing": _INDEX,
    "tools: no id": "the SDK hands out a call that nobody can answer; we name it",
    "tools: no name": _NAMELESS,
    "tools: max_tokens in the middle of a call": _PARTIAL_INPUT,
    "tools: broken off in a call": _PARTIAL_INPUT,
    "tools: leaked into the text": _LEAKED,
    "end: more after the end": "the SDK reads on after the end of the message",
    "restart: another message takes over": _TWO_ANSWERS,
    "restart: another message takes over from thinking and a call": _TWO_ANSWERS,
    "restart: the same message, its blocks from the beginning": _TWO_ANSWERS,
    "restart: usage of the first is not counted": _TWO_ANSWERS,
    "error: an error as other hosts write it": "the SDK passes over events without an event line",
    "form: no event lines": "the SDK passes over events without an event line",
    "form: two bad events in a row": "the SDK passes over events without an event line",
    "form: a character cut in two": _SURROGATES,
    "form: a whole message": _ONLY_STREAMS,
    "damage: bytes of a call that are not UTF-8": _STRICT_JSON,
}

RESPONSES: dict[str, str] = {
    "items: two messages": "the SDK puts nothing between them; a user reads two paragraphs",
    "items: a refusal": "the SDK keeps a refusal apart; a user has to see it all the same",
    "calls: reasoning between two calls": "the SDK reads the last event, which repeats nothing",
    "calls: the name comes last": "the SDK fails on a call without a name; we wait for it",
    "calls: leaked into the text": _LEAKED,
}
