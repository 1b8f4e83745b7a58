"""Hold open questions to the user, and make `ask_user`, the tool by which the model asks."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from kode_sidecar.agent.event_log import SessionStream
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.core.domain.agent_event import AskRequested, AskResolved
from kode_sidecar.core.domain.question_event import ResolvedBy
from kode_sidecar.core.kernel.contracts import CallCard, NewId, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.protocol.questions import AskParams, AskResult, PermissionRequestParams
from kode_sidecar.core.text.shown_text import cut_line, without_controls
from kode_sidecar.errors import KodeError

T = TypeVar("T")


class UserQuestions:
    """The open questions of all sessions. One stays open for `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._again: dict[str, tuple[str, asyncio.Future[None]]] = {}

    async def put(
        self,
        question: PermissionRequestParams | AskParams,
        ask: Callable[[], Coroutine[Any, Any, T]],
        published: Callable[[], Awaitable[None]],
    ) -> T | None:
        """Return the answer of `ask`, None after the time limit; a cancel withdraws the question.

        It asks only after `published`: events are held while a reply is on its way, and a question
        must not overtake the card that it is about (O6). The time limit includes repeats of the
        question. Raises what `ask` raises.
        """
        try:
            async with asyncio.timeout(self.timeout):
                await published()
                return await self._answer(question, ask)
        except TimeoutError:
            return None
        finally:
            self._again.pop(question.request_id, None)

    def repeater(self, session_id: str) -> Callable[[], None]:
        """Return a function that withdraws a session's currently open questions and asks again."""
        of_session = [again for of, again in self._again.values() if of == session_id]

        def repeat() -> None:
            for again in of_session:
                if not again.done():
                    again.set_result(None)

        return repeat

    async def _answer(
        self,
        question: PermissionRequestParams | AskParams,
        ask: Callable[[], Coroutine[Any, Any, T]],
    ) -> T:
        while True:
            again: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._again[question.request_id] = question.session_id, again
            asking = asyncio.create_task(ask())
            try:
                await asyncio.wait((asking, again), return_when=asyncio.FIRST_COMPLETED)
            finally:
                asking.cancel()
                await asyncio.wait((asking,))
            if not asking.cancelled():
                return asking.result()


_GO_ON = "Go on with the most careful of the choices, and tell the user which one you took."
_SUMMARY_CHARS = 120
_MOST_WORDS = 20_000


class AskUserParams(Struct, forbid_unknown_fields=True):
    """Ask the user to choose, when you cannot find out the answer.

    The user sees this and nothing of what you think. Do not ask for leave to go on.
    """

    question: Annotated[
        str, Meta(min_length=1, max_length=2000, description="In the user's language")
    ]
    choices: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)]],
        Meta(min_length=2, max_length=10, description="Short, all different, the likely one first"),
    ]
    multi: Annotated[bool, Meta(description="More than one may be chosen")] = False


@dataclass(frozen=True)
class Questions:
    """Asks the user the questions of `ask_user`."""

    editor: EditorPort
    new_id: NewId
    waiting: UserQuestions

    async def ask(
        self, params: AskUserParams, call: ToolCall, stream: SessionStream
    ) -> AskResult | None:
        """Return the user's answer; None if there was none in time.

        `stream` gets `ask.requested` and then `ask.resolved`, once each, in every case.

        Raises KodeError when the editor cannot ask.
        """
        question = AskParams(
            request_id=self.new_id("request"),
            session_id=call.session_id,
            turn_id=call.turn_id,
            block_id=call.block_id,
            tool_use_id=call.tool_use_id,
            question=without_controls(params.question),
            choices=tuple(params.choices),
            multi=params.multi,
        )
        named: dict[str, Any] = {
            "turn_id": call.turn_id,
            "message_id": call.message_id,
            "block_id": call.block_id,
            "request_id": question.request_id,
        }
        asked = AskRequested(
            **named,
            attention="blocked",
            question=question.question,
            choices=tuple(params.choices),
            multi=params.multi,
        )
        stream(asked)
        by: ResolvedBy = "cancel"
        answer: AskResult | None = None
        try:
            answer = await self.waiting.put(
                question, lambda: self.editor.ask_choice(question), stream.published
            )
            by = "timeout" if answer is None else "user"
            if answer is not None:
                known = tuple(choice for choice in params.choices if choice in answer.choices)
                words = without_controls(answer.text).strip()[:_MOST_WORDS]
                answer = AskResult(known if params.multi else known[:1], words)
        finally:
            chosen, words = (answer.choices, answer.text) if answer else (None, "")
            stream(AskResolved(**named, by=by, chosen=chosen, text=words))
        return answer


def ask_user_tool(questions: Questions, stream: SessionStream) -> Tool:
    """Make the tool. It waits for the answer; cancelling the turn withdraws the question.

    `stream` reports its questions.
    """

    async def run(params: AskUserParams, call: ToolCall) -> ToolOutcome:
        if len(set(params.choices)) < len(params.choices):
            raise KodeError("InvalidArguments", "Two choices are the same; make them all differ.")
        if any(choice != without_controls(choice).strip() for choice in params.choices):
            text = "Write choices without control characters and outer blanks."
            raise KodeError("InvalidArguments", text)
        try:
            answer = await questions.ask(params, call, stream)
        except KodeError as error:
            text = f"The user could not be asked: {error.message}. {_GO_ON}"
            raise KodeError(error.code, text) from None
        return _outcome(answer, questions.waiting.timeout)

    return Tool("ask_user", AskUserParams, run, kind="ask", card=_card)


def _card(params: AskUserParams) -> CallCard:
    return CallCard(params.question)


def _outcome(answer: AskResult | None, timeout: float) -> ToolOutcome:
    if answer is None:
        summary = f"No answer within {timeout:g} seconds"
        return ToolOutcome(ok=True, summary=summary, content=f"{summary}. {_GO_ON}")
    if not answer.choices and not answer.text:
        summary = "The user chose nothing"
        return ToolOutcome(ok=True, summary=summary, content=f"{summary}. {_GO_ON}")
    said: list[str] = []
    if answer.choices:
        said += ["The user chose:", *(f"- {choice}" for choice in answer.choices)]
    if answer.text:
        said += ["The user answered in their own words:", answer.text]
    first = f"The user chose: {', '.join(answer.choices)}" if answer.choices else answer.text
    summary = cut_line(first, _SUMMARY_CHARS)
    return ToolOutcome(ok=True, summary=summary, content="\n".join(said))
