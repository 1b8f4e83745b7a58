"""The tools of a run in a session without a model: real files, a real folder as the editor."""

from collections.abc import Callable
from typing import Any

from kode_sidecar.agent.edits import ChangeSets
from kode_sidecar.agent.permissions import UserQuestions
from kode_sidecar.agent.scouts.contracts import ScoutServices
from kode_sidecar.agent.turns import ToolScope
from kode_sidecar.core.kernel.contracts import Clock, NewId, Tool
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.jobs.run.contracts import RunScope, RunServices
from kode_sidecar.jobs.run.folder_editor import FolderEditor
from kode_sidecar.jobs.run.sandbox import Sandbox
from kode_sidecar.jobs.run.toolset import RunTools


def _ignored(_event: object) -> int:
    return 0


async def _saved() -> None:
    """Nothing is on its way to a disk."""


def folder_change_sets(
    sandbox: Sandbox, workspace: Workspace, clock: Clock, new_id: NewId
) -> ChangeSets:
    """The change sets of a turn in mode `auto` whose editor is the sandbox."""
    change_sets = ChangeSets(
        session_id="session",
        workspace=workspace,
        editor=FolderEditor(sandbox, workspace, _ignored),
        emit=_ignored,
        new_id=new_id,
        questions=UserQuestions(1.0),
        now=clock.timestamp,
        save=_saved,
    )
    change_sets.enter_turn("turn", "auto", ())
    return change_sets


def offered_tools(tools: RunTools, scope: RunScope, services: RunServices) -> dict[str, Tool]:
    """All tools of a run by name, the refused ones too. No scout is sent, and no plan told."""
    unused: Any = None
    emit: Any = _ignored
    turn: Callable[[], Any] = lambda: unused  # noqa: E731
    change_sets = folder_change_sets(
        scope.sandbox, scope.workspace, services.clock, services.new_id
    )
    session = ToolScope("session", turn, change_sets, emit, unused, unused, unused)
    scouts = ScoutServices(
        model=services.model,
        clock=services.clock,
        new_id=services.new_id,
        system_prompt=str,
        report_bug=services.report_bug,
        traits=services.traits,
    )
    return {tool.name: tool for tool in tools.offer(session, scouts)(unused, "auto")}
