"""The sessions in the state folder, as the settings want them: what every porch begins with."""

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
    """Make and open sessions there; `agent` is who answers where a session names nobody.

    `roots` are the URIs of the open folders. Without `agent` it is the one of the settings.
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
