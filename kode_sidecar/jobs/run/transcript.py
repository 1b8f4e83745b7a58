"""Writes `transcript.md`, a run as a person reads it, while the run goes on (B5).

Texts of the model or of files are quoted, so that they cannot pass for parts of the transcript. The
outcome comes last, after `run.json` holds it.
"""

from collections.abc import Callable, Sequence

from kode_sidecar.core.domain.run import RunRecord, RunResult, ToolRecord
from kode_sidecar.jobs.run.artifacts import CheckedDeliverable

Append = Callable[[str], None]
Clean = Callable[[str], str]


class Transcript:
    """Appends the parts in order. `clean` removes what must not be shown.

    All methods raise KodeError `Storage` as `append` does.
    """

    def __init__(self, append: Append, clean: Clean) -> None:
        self._append = append
        self._clean = clean

        self._begun = False

    def begin(self, record: RunRecord, prompt: str = "") -> None:
        """Write which run this is, and its prompt."""
        self._begun = True
        rows = {
            "Profile": record.profile_id,
            "Session": record.session_id,
            "Task": record.task_id,
            "Engine": record.engine,
            "Model": record.model,
            "Configuration": f"{record.config_path} ({record.config_fingerprint[:12]})",
            "Started": record.started_at or "",
        }
        lines = "\n".join(f"- {name}: {self._line(value)}" for name, value in rows.items())
        self._append(f"# Run {record.run_id}\n\n{lines}\n")
        if prompt:
            self._append(f"\n## Prompt\n\n{self._quoted(prompt)}\n\n## Conversation\n")

    def said(self, step: int, text: str) -> None:
        """Write an answer of the model."""
        if text.strip():
            self._append(f"\n**Step {step}**\n\n{self._quoted(text)}\n")

    def tool(self, call: ToolRecord) -> None:
        """Write a tool call in its place in the conversation."""
        self._append(
            f"\n- `{call.tool_name}` {self._line(call.action)}: {call.status}, "
            f"{self._line(call.result_summary)}\n"
        )

    def tool_calls(self, calls: Sequence[ToolRecord]) -> None:
        """Write a table of all tool calls."""
        rows = [
            (call.tool_name, call.action, call.status, f"{call.duration_ms} ms") for call in calls
        ]
        self._append(f"\n## Tool calls\n\n{self._table(('tool', 'about', 'status', 'time'), rows)}")

    def deliverables(self, found: Sequence[CheckedDeliverable]) -> None:
        """Write a table of the deliverables and what was found."""
        rows = [
            (
                one.path,
                "yes" if one.required else "no",
                f"{one.bytes:,} bytes" if one.ok else one.problem,
            )
            for one in found
        ]
        table = self._table(("deliverable", "required", "found"), rows)
        self._append(f"\n## Deliverables\n\n{table}")

    def outcome(self, record: RunRecord, result: RunResult) -> None:
        """Write how the run ended, as the last part. Writes the head first if it ended early."""
        if not self._begun:
            self.begin(record)
        error = "" if result.error is None else f"\n- {result.error.code}: {result.error.message}"
        governance = f", governance {result.governance}" if result.governance else ""
        text = f"\n\n{self._quoted(result.final_text)}" if result.final_text else ""
        self._append(
            f"\n## Outcome\n\n- {result.status}{governance}, exit code {result.exit_code}"
            f"{self._clean(error)}{text}\n"
        )

    def _table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        if not rows:
            return "None.\n"
        lines = [heads, ["---"] * len(heads), *rows]
        cells = (" | ".join(self._line(cell).replace("|", "\\|") for cell in row) for row in lines)
        return "".join(f"| {row} |\n" for row in cells)

    def _line(self, text: str) -> str:
        return " ".join(self._clean(text).split())

    def _quoted(self, text: str) -> str:
        lines = self._clean(text).strip().split("\n")
        return "\n".join(f"> {line}".rstrip() for line in lines)
