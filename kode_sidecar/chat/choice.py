"""Which model and mode the next turns ask for: `/model` and `/mode`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from kode_sidecar.chat.keyboard import Interrupts
from kode_sidecar.chat.words import Words
from kode_sidecar.client.connection import Client, RpcError
from kode_sidecar.client.terminal import Terminal
from kode_sidecar.protocol.session import Mode
from kode_sidecar.text.shown_text import one_line

MODES: tuple[str, ...] = get_args(Mode)


@dataclass
class Choice:
    """What the user chose; `settings` say the rest."""

    client: Client
    interrupts: Interrupts
    terminal: Terminal
    words: Words
    chosen: dict[str, str]
    settings: Mapping[str, object] = field(default_factory=dict[str, object])

    def now(self, name: str) -> str:
        """The `model` or `mode` of the next turn."""
        return self.chosen.get(name) or str(self.settings.get(name, ""))

    async def choose_model(self, model: str) -> None:
        """Note the model of the next turns; without one list what there is. Raises Interrupted."""
        if model:
            self.chosen["model"] = model
            self.terminal.line(self.words.model_set.format(model=model))
            return
        self.terminal.line(self.words.model.format(model=self.now("model")))
        try:
            offer = await self.interrupts.unless(self.client.request("kode/models/list", {}))
        except RpcError as error:
            self.terminal.line(f"⚠ {one_line(error.message)}", "yellow")
            return
        names = [each["name"] for each in offer["logical"]]
        for provider in offer["providers"]:
            names += [each["name"] for each in provider["models"] if each.get("offered")]
            if provider.get("error", {}).get("code") not in (None, "AuthRequired"):
                self.terminal.line(f"⚠ {one_line(provider['error']['message'])}", "yellow")
        self.terminal.line(self.words.models.format(models=", ".join(names)), "dim")

    def choose_mode(self, mode: str) -> None:
        """Note the mode of the next turns; without one say which it is."""
        words = self.words
        if mode and mode not in MODES:
            text = words.mode_wrong.format(mode=mode, modes=", ".join(MODES))
            self.terminal.line(text, "yellow")
            return
        if mode:
            self.chosen["mode"] = mode
        text = words.mode_set if mode else words.mode
        self.terminal.line(text.format(mode=self.now("mode")))
