"""Makes what a turn begins with: what the model reads before a prompt, and the prompt."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kode_sidecar.agent.context.builder import Traits
from kode_sidecar.agent.context.reminders import EditorNote
from kode_sidecar.agent.event_log import NewSession
from kode_sidecar.agent.turns.goal import check_goal
from kode_sidecar.core.domain.message import (
    NEW_TOOLS,
    OUR_ORIGINS,
    OWN_WORDS,
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    texts_of,
)
from kode_sidecar.core.domain.pictures import check_picture
from kode_sidecar.core.kernel.contracts import Incoming, NewId
from kode_sidecar.core.protocol.turn import ContextInspectParams, TurnOptions, TurnStartParams
from kode_sidecar.errors import invalid_at

if TYPE_CHECKING:
    from kode_sidecar.agent.verbs.calls import VerbCall

TITLE_LENGTH = 60
_MOST_NAMED = 8
Params = TypeVar("Params", TurnStartParams, ContextInspectParams)


def prompt_blocks(blocks: Sequence[Block], new_id: NewId) -> tuple[Block, ...]:
    """The blocks of a prompt with ids of ours; blank text is left out.

    Raises KodeError `InvalidParams` for blocks that only a model or a tool makes.
    """
    kept: list[Block] = []
    for position, block in enumerate(blocks):
        if not isinstance(block, TextBlock | ImageBlock | ResourceBlock):
            text = "a prompt holds text, image and resource blocks only."
            raise invalid_at(f"$.input[{position}]", text)
        if isinstance(block, ImageBlock):
            check_picture(block, f"$.input[{position}]")
        if not isinstance(block, TextBlock) or block.text.strip():
            ours = ("blob", "opaque") if isinstance(block, TextBlock) else ()
            own: dict[str, Any] = dict.fromkeys(ours)
            kept.append(msgspec.structs.replace(block, id=new_id("block"), **own))
    return tuple(kept)


def check_is_seen(
    blocks: Sequence[Block], model: str, traits: Traits, seeing: Callable[[], Sequence[str]]
) -> None:
    """Raise KodeError `InvalidParams` for a picture that no model of this name would see."""
    at = next((at for at, one in enumerate(blocks) if isinstance(one, ImageBlock)), None)
    if at is None or traits(model).sees:
        return
    text = f"{model} reads text only and would not see this picture."
    models = seeing()[:_MOST_NAMED]
    could = f"These do: {', '.join(models)}. " if models else "No model with a key of yours does. "
    more = "Choose one, leave the picture out, or say `images: true` of a model in config.yaml."
    raise invalid_at(f"$.input[{at}]", f"{text} {could}{more}")


def title_of(blocks: Sequence[Block]) -> str:
    """The first line with words in it, cut to a title's length."""
    text = next(iter(texts_of(blocks)), "")
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def with_choices(
    params: Params, options: NewSession, call: "VerbCall | None"
) -> tuple[Params, NewSession]:
    """The params and options of a turn, with what the called verb chooses.

    They come before the client's, which it may send with every turn. Raises KodeError
    `ConfigInvalid` if there is no such agent, `InvalidParams` for a goal that cannot be checked.
    """
    if isinstance(params, TurnStartParams):
        check_goal(params.goal)
    if call is None:
        return params, options
    chosen = msgspec.structs.replace(
        params,
        mode=call.mode or params.mode,
        model=call.model or params.model,
        effort=call.effort or params.effort,
    )
    if call.goal is not None and isinstance(chosen, TurnStartParams):
        chosen = msgspec.structs.replace(chosen, goal=call.goal)
        check_goal(chosen.goal)
    if call.agent is None:
        return chosen, options
    return chosen, replace(options, agent=options.defaults.profile(call.agent))


_EDITOR_CONTEXT = "editorContext"


def reminder_input(text: str, editor_context: Mapping[str, Any] | None = None) -> Incoming:
    """Return what the sidecar itself has to say to the model, as a persisted message.

    `editor_context` is what it says of the editor.
    """
    meta: dict[str, Any] = {"origin": "reminder"}
    if editor_context is not None:
        meta[_EDITOR_CONTEXT] = editor_context
    return Incoming("user", (TextBlock(text=text),), meta)


def prompt_reminder(
    reported: Sequence[str | None], note: EditorNote | None, shown: Sequence[Message]
) -> Incoming | None:
    """Return what goes before a prompt: reports, and what the user looks at.

    The latter only if the messages that the model gets do not say so already.
    """
    texts = [text for text in reported if text]
    if note is None or note.meta == _known_editor_context(shown):
        return reminder_input("\n\n".join(texts)) if texts else None
    return reminder_input("\n\n".join([*texts, note.text]), note.meta)


def _known_editor_context(shown: Sequence[Message]) -> Mapping[str, Any] | None:
    said = (message.meta.get(_EDITOR_CONTEXT) for message in reversed(shown))
    return next((context for context in said if context is not None), None)


def prompt_input(
    blocks: tuple[Block, ...], meta: Mapping[str, Any], options: TurnOptions | None
) -> Incoming:
    """The prompt. Its `meta` is the client's, but for the names whose meaning is ours."""
    own = {name: value for name, value in meta.items() if name not in (OWN_WORDS, NEW_TOOLS)}
    if own.get("origin") in OUR_ORIGINS:
        del own["origin"]
    if options is not None:
        own["options"] = msgspec.to_builtins(options)
    return Incoming("user", blocks, own)
