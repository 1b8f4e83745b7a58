"""`kode-sidecar chat`. A module of its own, so that no other command loads the chat."""

import argparse
import os

from kode_sidecar.core.settings import client_agent, load_settings
from kode_sidecar.servers.boot.provider_setup import usable_model
from kode_sidecar.terminal.chat import ChatOptions, chat


def chat_command(options: argparse.Namespace) -> int:
    """Run the chat in this terminal; return the exit code. Raises KodeError."""
    loaded = load_settings(os.environ)
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
        )
    )
