"""The life of a session as the caches of hosts see it: its requests grow, whatever changes.

The parts are real from the session down to the bytes of a dialect; the user, the editor and the day
change what surrounds them. A request that begins otherwise than the one before it was announced.
"""

import asyncio
import itertools
import json
import re
import shutil
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.sessions import SessionCopies
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.agent.turns import SessionServices, ToolScope
from kode_sidecar.agent.turns.services import OfferTools
from kode_sidecar.core.domain.agent_event import Event, Notice, TurnCompleted
from kode_sidecar.core.domain.message import FIND_TOOLS, TextBlock
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.core.kernel.contracts import (
    IdKind,
    ModelRequest,
)
from kode_sidecar.core.protocol.session import Mode, SessionForkParams, SessionNewParams
from kode_sidecar.core.protocol.turn import TurnStartParams
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from simulation.edit_world import OneFolder
from simulation.editors import EDITORS
from simulation.life_surroundings import MODES, LifeSurroundings, prompts
from simulation.loop import SimulatedLoop
from simulation.model import SimulatedModel
from simulation.sidecar import Sidecar
from simulation.story import Step, Story, Violation
from simulation.user_desk import UserDesk

HOSTS: Mapping[str, tuple[ModelProfile, ModelTraits]] = {
    "kimi": (
        ModelProfile("m", "kimi", system_notes=True, late_tools=True),
        ModelTraits(None, returns_thinking=False, late_tools=True),
    ),
    "older kimi": (
        ModelProfile("m", "kimi", system_notes=True, late_tools=False),
        ModelTraits(None, returns_thinking=False),
    ),
    "chat": (ModelProfile("m", "openai_chat"), ModelTraits(None, returns_thinking=False)),
    "responses": (
        ModelProfile("m", "openai_responses"),
        ModelTraits(None, returns_thinking=True, effort_in_prefix=False),
    ),
    "anthropic": (
        ModelProfile("m", "anthropic_messages"),
        ModelTraits(None, returns_thinking=True),
    ),
}
Json = dict[str, Any]


@dataclass(frozen=True)
class _Sent:
    """A request: the ids of its messages, what stands before them, and they themselves."""

    ids: Sequence[str]
    head: str
    messages: Sequence[str]

    def shared(self, other: "_Sent") -> int:
        """Return how many messages of this one a host finds in its cache of another."""
        if self.head != other.head:
            return 0
        pairs = zip(self.messages, other.messages, strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _sent(request: ModelRequest, profile: ModelProfile, traits: ModelTraits) -> _Sent:
    body: Json = json.loads(DIALECTS[profile.dialect].encode_request(request, profile).body)
    messages: list[object] = body.get("messages") or body["input"]
    head = [request.model, *(body.get(one) for one in ("tools", "system", "instructions"))]
    head += [request.effort] if traits.effort_in_prefix else []
    ids = [message.id for message in request.messages]
    return _Sent(ids, _plain(head), [_plain(message) for message in messages])


def _plain(value: object) -> str:
    """Return JSON without the marks of what is to be cached, which move on."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace(', "cache_control": {"type": "ephemeral"}', "")


class _Model(SimulatedModel):
    """Answers at once: a call of a tool where the prompt names one, else a word."""

    def __init__(self, sending: Callable[[ModelRequest], None]) -> None:
        super().__init__()
        self._sending = sending

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """See `SimulatedModel`."""
        self._sending(request)
        yield [ResponseStarted("r", "m")]
        last = request.messages[-1]
        word = "".join(getattr(block, "text", "") for block in last.content)
        if last.role == "user" and word.startswith("find"):
            arguments = json.dumps({"action": "call", "tool": word.split()[1], "arguments": {}})
            number = len(request.messages)
            yield [ToolUseStarted(0, f"call-{number}", FIND_TOOLS), ToolUseDelta(0, arguments)]
            yield [ResponseFinished("tool_calls", "tool_calls")]
            return
        yield [TextDelta(f"answer {len(request.messages)}"), ResponseFinished("stop", "stop")]


@dataclass
class _Process(Sidecar):
    """A process in surroundings that change."""

    around: LifeSurroundings = field(kw_only=True)
    traits: ModelTraits = field(kw_only=True)

    def _services(self, clock: Any) -> SessionServices:
        return replace(
            super()._services(clock),
            system_prompt=self.around.prompt,
            traits=self._traits_of,
            tools=self._offered,
        )

    def _traits_of(self, _name: str) -> ModelTraits:
        return self.traits

    def _offered(self, _scope: ToolScope) -> OfferTools:
        return self.around.tools


@dataclass
class LifeWorld:
    """Plays one story; see `playing.World`."""

    story: Story
    loop: SimulatedLoop
    root: Path
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _task: "asyncio.Task[None] | None" = None
    _past: list[_Sent] = field(default_factory=list[_Sent])
    _origin: Sequence[_Sent] = ()
    _prompts: list[str] = field(default_factory=list[str])
    _announced: bool = False
    _changed: str = ""
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _problem: BaseException | None = None
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._around = LifeSurroundings(self.story.settings.get("zone", "UTC"))
        self._profile, self._traits = HOSTS[self.story.settings.get("host", "kimi")]
        self._mode: Mode = "review"
        self._model_name, self._effort = "m", ""
        self._project = self.root / "project"
        self._project.mkdir(exist_ok=True)
        (self._project / "a.txt").write_text("line\n")
        self._home = self.root / f"life-{next(_LIVES)}"
        self._begin()
        self._spawn(self._create())

    def _begin(self) -> None:
        workspace = OneFolder([self._project], "utf-16")
        self._desk = UserDesk(
            self._project / "a.txt",
            EDITORS["plain"],
            "\n",
            workspace.documents,
            lambda _: None,
            hears=self._receive,
            hears_delta=lambda _desk, _delta: None,
        )
        self._process = _Process(
            home=self._home,
            workspace=workspace,
            editor=self._desk,
            model=_Model(self._sending),
            loop=self.loop,
            new_id=self._new_id,
            storage="jsonl",
            report_bug=self._bug,
            around=self._around,
            traits=self._traits,
        )

    def _new_id(self, kind: IdKind) -> str:
        return f"{kind[0]}{next(self._numbers):09}"

    def _bug(self, where: str, error: BaseException) -> None:
        self._problem = self._problem or Violation("a bug", f"{where}: {error!r}")

    def _receive(self, _desk: UserDesk, events: Sequence[Event]) -> None:
        if any(isinstance(one, Notice) and one.code == "ReadAnew" for one in events):
            self._announced = True
        if any(isinstance(one, TurnCompleted) for one in events):
            self._ended.set()

    # ---- what was sent ---------------------------------------------------------------------------

    def _sending(self, request: ModelRequest) -> None:
        sent = _sent(request, self._profile, self._traits)
        past = [*self._past, *self._origin]
        before = [one for one in past if one.ids == sent.ids[: len(one.ids)]]
        wanted = max((len(one.messages) for one in before), default=0)
        if max((sent.shared(one) for one in past), default=0) < wanted:
            self._changed = "a message" if sent.head == past[-1].head else "its head"
        self._past.append(sent)
        self._check_known(request)

    def _check_known(self, request: ModelRequest) -> None:
        """Raise Violation unless what the model was told last of the day and the mode is true."""
        blocks = [block for message in request.messages for block in message.content]
        said = "\n".join([request.system, *(getattr(block, "text", "") for block in blocks)])
        if re.findall(r"2026-01-\d\d", said)[-1] != self._around.today:
            raise Violation("the model does not know the day", self._around.today)
        places = {
            mode: max(said.rfind(prompts(one).read(f"mode_{mode}")) for one in ("en", "zh"))
            for mode in MODES
        }
        if max(places, key=lambda mode: places[mode]) != self._mode:
            raise Violation("the model does not know the mode", self._mode)

    # ---- steps -----------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Let one thing happen. Raises ValueError for an unknown verb."""
        match step.verb:
            case "around":
                self._around.toggle(step.word(0), step.number(1))
            case "mode":
                self._mode = cast(Mode, step.word(0))
            case "effort":
                self._effort = step.word(0)
            case "model":
                self._model_name = step.word(0)
            case "turn" | "find" | "rewrite" | "fork" | "restart":
                self._spawn(getattr(self, f"_{step.verb}")(step))
            case _:
                raise ValueError(f"a life knows no step {step.verb!r}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = self.loop.create_task(work)

    async def _create(self) -> None:
        params = SessionNewParams(title="life", agent="coder")
        created = await self._process.sessions.create(params)
        self._session: Session = await self._process.sessions.get(created.session_id)

    async def _turn(self, step: Step) -> None:
        await self._ask(f"prompt {step.number(0)}", None)

    async def _find(self, step: Step) -> None:
        await self._ask(f"find {step.word(0)}", None)

    async def _rewrite(self, step: Step) -> None:
        if self._prompts:
            old = self._prompts[step.number(0) % len(self._prompts)]
            await self._ask("prompt again", old)

    async def _ask(self, text: str, replaces: str | None) -> None:
        params = TurnStartParams(
            session_id=self._session.id,
            input=(TextBlock(text=text),),
            replaces=replaces,
            mode=self._mode,
            model=self._model_name,
            effort=cast(Any, self._effort or None),
        )
        self._ended.clear()
        result, release = await self._session.start_turn(params)
        release()
        self._prompts.append(result.message_id)
        await self._ended.wait()
        if self._changed and not self._announced:
            text = f"{self._changed}, and the user was not notified"
            raise Violation("what was sent changes", text)
        self._announced, self._changed = False, ""

    async def _fork(self, _step: Step) -> None:
        copies = SessionCopies(self._process.folders, lambda: None, tuple)
        forked = await copies.fork(SessionForkParams(session_id=self._session.id))
        await self._session.discard()
        session = await self._process.sessions.open(forked.session_id)
        # The copy has other ids; its next request goes on from the newest of the original.
        self._origin = [replace(one, ids=()) for one in self._past[-1:]]
        self._session, self._prompts, self._past = session, [], []

    async def _restart(self, _step: Step) -> None:
        session_id = self._session.id
        await self._session.discard()
        self._begin()
        self._session = await self._process.sessions.open(session_id)

    def check(self) -> bool:
        """See `playing.World`; True while a step is under way."""
        if self._problem is not None:
            raise self._problem
        task = self._task
        if task is None:
            return False
        if not task.done():
            when = self.loop.next_timer
            if when is None:
                raise Violation("something waits for ever", str(task))
            self.loop.pass_time(when)
            return True
        self._task = None
        task.result()
        return False

    def settle(self) -> bool:
        """Close the session, once."""
        if self._is_over:
            return False
        self._is_over = True
        self._spawn(self._session.discard())
        return True

    def finish(self) -> None:
        """What there was to check was checked with each request."""

    def close(self) -> None:
        """Nobody goes on."""
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.play(lambda: False)
        shutil.rmtree(self._home, ignore_errors=True)


_LIVES = itertools.count(1)
