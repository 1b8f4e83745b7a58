"""`kode-sidecar chat`. A module of its own, so that no other command loads the chat."""

import argparse

from kode_sidecar.core.settings import client_agent
from kode_sidecar.servers.boot.provider_setup import usable_model
from kode_sidecar.terminal.chat import ChatOptions, chat
from kode_sidecar.terminal.cli.setup import settings_with_key


def chat_command(options: argparse.Namespace) -> int:
    """Run the chat in this terminal; return the exit code. Raises KodeError."""
    loaded = settings_with_key(options.model, options.locale)
    return chat(
        ChatOptions(
            root=options.root,
            model=usable_model(loaded, options.model),
            agent=options.agent or client_agent(loaded),
            mode=options.mode,
            accept=options.accept,
            trusted=options.trust,
            locale=options.locale,
            by_lines=options.lines,
            prompt=" ".join(options.prompt),
            resumed="" if options.go_on else options.session,
        )
    )
