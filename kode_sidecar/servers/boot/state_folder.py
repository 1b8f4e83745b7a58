"""Opens the sessions in the state folder by the settings: what every entry point begins with."""

from collections.abc import Callable, Sequence

from kode_sidecar.agent.event_log import SessionDefaults
from kode_sidecar.agent.sessions import SessionFolders
from kode_sidecar.core.settings import Settings
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.servers.boot.system import Environment


def session_folders(
    settings: Settings,
    saver: Saver,
    environment: Environment,
    roots: Callable[[], Sequence[str]],
    agent: str | None = None,
) -> SessionFolders:
    """Return what makes and opens sessions in the state folder.

    `roots` are the URIs of the open folders. `agent` answers if a session names none; its default
    is that of the settings.
    """
    store = ConversationStore(settings.storage_root, saver, storage=settings.storage)
    defaults = SessionDefaults(
        agent=agent or settings.agent,
        mode=settings.mode,
        model=settings.model,
        window_messages=settings.window_messages,
        agents=settings.agents,
    )
    return SessionFolders(store, saver, environment.clock, environment.new_id, defaults, roots)
