"""The prompt of a run: role, rules, skill index, memory, sandbox rules, in this order (B3).

Equal parts give equal bytes: hosts cache prompts by prefix, and records can be compared.
"""

from dataclasses import dataclass

from kode_sidecar.context.prompt_files import PromptFiles
from kode_sidecar.headless_run.run_config import DeliverablePart, RunConfig


@dataclass(frozen=True)
class PromptParts:
    """What of the prompt is not in the configuration. An empty part is left out.

    `skill_index` tells the skills on offer, `memory` what was recalled.
    """

    skill_index: str = ""
    memory: str = ""


def compose_prompt(prompts: PromptFiles, config: RunConfig, parts: PromptParts) -> str:
    """The system prompt. Raises KodeError `ConfigInvalid` when a prompt file is missing."""
    sections = [config.profile.role.strip()]
    if config.profile.rules:
        rules = "\n".join(f"- {_item(rule)}" for rule in config.profile.rules)
        sections.append(prompts.read("run_rules", {"rules": rules}))
    sections += [part for part in (parts.skill_index, parts.memory) if part]
    wanted = "\n".join(_deliverable(prompts, one) for one in config.deliverables)
    sections.append(
        prompts.read("run_sandbox", {"deliverables": wanted or prompts.read("run_no_deliverables")})
    )
    return "\n\n".join(sections) + "\n"


def _deliverable(prompts: PromptFiles, wanted: DeliverablePart) -> str:
    name = "run_required" if wanted.required else "run_optional"
    about = f": {_item(wanted.description)}" if wanted.description.strip() else ""
    return f"- `{wanted.path}` ({prompts.read(name)}){about}"


def _item(text: str) -> str:
    """A text as an item of a list: its later lines belong to it."""
    return "\n  ".join(text.strip().splitlines())
