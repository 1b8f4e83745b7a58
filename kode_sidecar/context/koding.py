"""What the options of a prompt tell the model (C7)."""

from kode_sidecar.context.prompt_files import PromptFiles
from kode_sidecar.protocol.turn import TurnOptions
from kode_sidecar.text.shown_text import without_controls


def koding_note(prompts: PromptFiles, options: TurnOptions) -> str | None:
    """The reminder before the prompt; None when there is nothing to tell.

    Raises KodeError `ConfigInvalid` when a prompt file is missing or broken.
    """
    told: list[str] = []
    if options.koding:
        told.append(prompts.read("koding"))
    context = without_controls(options.koding_context or "").strip()
    if context:
        told.append(prompts.read("koding_context", {"context": context}))
    return "\n\n".join(told) or None
