"""`search_code`: find matching lines in the project, as this session sees its files."""

from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.agent.tools.list_files import other_projects
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep
from kode_sidecar.infrastructure.workspace.search import Search, SearchResult
from kode_sidecar.infrastructure.workspace.search_query import SearchQuery
from kode_sidecar.infrastructure.workspace.workspace import OnShown, Workspace


class SearchCodeParams(Struct, forbid_unknown_fields=True):
    """Search the project for a text, line by line.

    Ignored and binary files, files over 10 MB and files that hold credentials are left out.
    """

    query: Annotated[
        str, Meta(min_length=1, max_length=1000, description="Taken literally without regex")
    ]
    max_results: Annotated[int, Meta(ge=1, le=200, description="Most lines to show")] = 50
    regex: Annotated[bool, Meta(description="query has ripgrep's syntax")] = False
    case_sensitive: bool = True
    path: Annotated[str, Meta(description="File or folder, relative to the open folder")] = "."
    glob: (
        Annotated[str, Meta(description="Only these files below path: *.py, src/**/*.ts")] | None
    ) = None


def search_code_tool(
    workspace: Workspace,
    ripgrep: Ripgrep,
    files: SessionFileView | None = None,
    on_shown: OnShown | None = None,
) -> Tool:
    """Make the tool. `files` includes the session's proposals; `on_shown` gets the shown lines."""
    search = Search(workspace, ripgrep, files or workspace, on_shown)

    async def run(params: SearchCodeParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        query = SearchQuery(
            params.query.replace("\r\n", "\n"),
            regex=params.regex,
            case_sensitive=params.case_sensitive,
            path=params.path,
            glob=params.glob or "",
            max_results=params.max_results,
        )
        result = await search.run(query)
        head = without_controls(_head(query, result))
        lines = [f"{match.path}:{match.line}: {match.text}" for match in result.matches]
        content = "\n".join([head, *lines, *_remarks(query, result)])
        return ToolOutcome(ok=True, summary=head, content=content)

    return Tool("search_code", SearchCodeParams, run, read_only=True, kind="search", card=_card)


def _card(params: SearchCodeParams) -> CallCard:
    named = f", files like {params.glob}" if params.glob else ""
    title = f'Search "{params.query}" in {params.path}{named}'
    return CallCard(title, (CallPlace(params.path),))


def _head(query: SearchQuery, result: SearchResult) -> str:
    count = len(result.matches)
    text = query.text.replace("\n", "\\n")
    if not count:
        return f'No matches for "{text}"'
    files = len({match.path for match in result.matches})
    found = f"{count} matching line{'' if count == 1 else 's'}"
    return f'{found} in {files} file{"" if files == 1 else "s"} for "{text}"'


def _remarks(query: SearchQuery, result: SearchResult) -> list[str]:
    """Return remarks for the model about the results."""
    remarks: list[str] = []
    if result.more:
        remarks.append(
            f"cut after {query.max_results} lines; narrow with path or glob, or raise max_results"
        )
    if result.cut:
        remarks.append(f"the search is not complete: {result.cut}")
    notes = {match.path: match.note for match in result.matches if match.note}
    remarks += [f"{path} {note}" for path, note in notes.items()]
    remarks += [f"{path} was not searched: the editor's text is unknown" for path in result.unknown]
    if result.left_out:
        remarks.append(
            f"files not searched: {result.left_out}; name a file or folder as path to look there"
        )
    if result.projects:
        remarks.append(f"{other_projects(result.projects)}; name one as path to search it")
    if not result.matches and query.case_sensitive:
        remarks.append("nothing found; case_sensitive=false also finds other spellings")
    return [f"[{without_controls(remark)}]" for remark in remarks]
