"""Commands that ask a short-lived sidecar: sessions, usage, skills, memory, models.

Each prints lines for people, or with `--json` only the sidecar's answer.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from kode_sidecar.core.text.shown_text import clipped, one_line, visible, with_escapes
from kode_sidecar.errors import ERRORS, KodeError
from kode_sidecar.terminal.client.connection import Client, ConnectionLost, RpcError
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.sidecar_process import DEFAULT_COMMAND

Json = dict[str, Any]
Ask = Callable[[str, Json], Awaitable[Any]]
Work = Callable[[Ask, argparse.Namespace], Awaitable[Json]]
_PAGE = 500
_TITLE_COLUMNS = 60


def inquire(
    options: argparse.Namespace,
    work: Work,
    lines: Callable[[Json], Iterator[str]],
) -> int:
    """Let `work` ask, and print its result. Raises KodeError."""
    found = asyncio.run(_asked(work, options))
    if getattr(options, "json", False):
        sys.stdout.write(with_escapes(json.dumps(found, ensure_ascii=False)) + "\n")
    else:
        sys.stdout.writelines(f"{visible(line)}\n" for line in lines(found))
    return 0


async def _asked(
    work: Work,
    options: argparse.Namespace,
    environment: Mapping[str, str] | None = None,
) -> Json:
    try:
        env_file = getattr(options, "env_file", None)
        command = [*DEFAULT_COMMAND, *(["--env-file", env_file] if env_file else [])]
        spawning = Client.spawn(command, keep_frames=0, apart=True, env=environment)
        async with await spawning as client:
            root = getattr(options, "root", None) or Path.cwd()
            await client.initialize(
                Handshake(
                    roots=[root],
                    trusted=getattr(options, "trust", False),
                    client_name="kode-sidecar",
                )
            )
            return await work(client.request, options)
    except RpcError as error:
        data: object = error.data
        code = str(cast(Json, data).get("code")) if isinstance(data, dict) else ""
        raise KodeError(code if code in ERRORS else "InternalError", error.message) from None
    except (ConnectionLost, OSError) as error:
        raise KodeError("InternalError", f"The sidecar cannot be asked: {error}") from None


def asking(method: str) -> Work:
    """Return a function that sends one request without params."""

    async def work(ask: Ask, _options: argparse.Namespace) -> Json:
        return cast(Json, await ask(method, {}))

    return work


async def all_sessions(ask: Ask, options: argparse.Namespace) -> Json:
    """Return the sessions of this folder or of all folders, filtered by the words searched for."""
    params: Json = {"all": options.all, "limit": min(options.limit, _PAGE)}
    if getattr(options, "query", None):
        params["query"] = options.query
    return {"sessions": await _listed(ask, params, options.limit)}


async def _listed(ask: Ask, params: Json, limit: int = sys.maxsize) -> list[Json]:
    """Return the sessions listed for these parameters, reading page by page."""
    found: list[Json] = []
    while len(found) < limit:
        page = await ask("kode/session/list", params)
        found += page["sessions"]
        if "nextCursor" not in page:
            break
        params = {**params, "cursor": page["nextCursor"]}
    return found[:limit]


def session_lines(found: Json) -> Iterator[str]:
    """Yield one line per session: id, time, title."""
    for session in found["sessions"]:
        title = clipped(one_line(session["title"]), _TITLE_COLUMNS)
        yield f"{session['sessionId']}  {session['updatedAt'][:16]}  {title}"
    if not found["sessions"]:
        yield "There are no sessions; --all shows those of other folders."


async def _whole_id(ask: Ask, beginning: str) -> str:
    """Return the only session id that begins with `beginning`. Raises KodeError."""
    found = await _listed(ask, {"all": True, "limit": _PAGE})
    names = (one["sessionId"] for one in found)
    fitting = [name for name in names if name.startswith(beginning)]
    if len(fitting) != 1:
        what = "are several sessions" if fitting else "is no session"
        text = f"There {what} with an id that begins with {beginning}: see sessions list --all."
        raise KodeError("SessionNotFound", text)
    return fitting[0]


async def one_session(ask: Ask, options: argparse.Namespace) -> Json:
    """Return a session's head, totals, and its conversation in Markdown."""
    ref = {"sessionId": await _whole_id(ask, options.id)}
    head = await ask("kode/session/get", ref)
    text = await ask("kode/session/export", {**ref, "format": "md"})
    return {**head, "text": text["text"]}


def session_text(found: Json) -> Iterator[str]:
    """Yield the conversation."""
    yield found["text"].rstrip("\n")


async def exported(ask: Ask, options: argparse.Namespace) -> Json:
    """Return a session as one text; write it to a file if one is named."""
    ref = {"sessionId": await _whole_id(ask, options.id)}
    made = await ask("kode/session/export", {**ref, "format": options.format})
    if options.output is not None:
        try:
            options.output.write_text(made["text"], encoding="utf-8", newline="\n")
        except OSError as error:
            raise KodeError(
                "Storage", f"Cannot write {options.output}: {error.strerror}."
            ) from None
        return {"file": str(options.output)}
    return made


def exported_text(made: Json) -> Iterator[str]:
    """Yield the text, or the name of the written file."""
    yield made["text"].rstrip("\n") if "text" in made else f"wrote {made['file']}"


async def deleted(ask: Ask, options: argparse.Namespace) -> Json:
    """Delete sessions for good."""
    names = [await _whole_id(ask, beginning) for beginning in options.ids]
    for name in names:
        await ask("kode/session/delete", {"sessionId": name})
    return {"deleted": names}


def deleted_lines(done: Json) -> Iterator[str]:
    """Yield one line per deleted session."""
    yield from (f"deleted {name}" for name in done["deleted"])


async def forked(ask: Ask, options: argparse.Namespace) -> Json:
    """Copy a session up to its head, or up to one of its messages."""
    params: Json = {"sessionId": await _whole_id(ask, options.id)}
    if options.at:
        params["messageId"] = options.at
    return cast(Json, await ask("kode/session/fork", params))


def forked_line(done: Json) -> Iterator[str]:
    """Yield the id of the copy."""
    yield done["sessionId"]


async def usage(ask: Ask, options: argparse.Namespace) -> Json:
    """Return tokens and costs by day, session or model, in the local time zone."""
    offset = datetime.now().astimezone().utcoffset()
    params: Json = {
        "by": options.by or ["day", "model"],
        "utcOffsetMinutes": int(offset.total_seconds() // 60) if offset else 0,
    }
    for name in ("since", "until"):
        if getattr(options, name):
            params[name] = getattr(options, name)
    if options.session:
        params["sessionId"] = await _whole_id(ask, options.session)
    return cast(Json, await ask("kode/usage/get", params))


def usage_lines(found: Json) -> Iterator[str]:
    """Yield the rows, then the sum."""
    rows: list[Json] = [*found["rows"], {**found["total"], "day": "total"}]
    for row in rows:
        keys = [row[key] for key in ("day", "sessionId", "model", "turnId") if key in row]
        used = row["usage"]
        costs = [f"{cost['amount']:.4f} {cost['currency']}" for cost in row.get("costs", ())]
        if "costUsd" in row and not any(cost.endswith("USD") for cost in costs):
            costs.append(f"{row['costUsd']:.4f} USD")
        tokens = f"{used.get('inputTokens', 0):,} in, {used.get('outputTokens', 0):,} out"
        cached = f"({used.get('cachedTokens', 0):,} cached)"
        yield "  ".join([*keys, f"{row['answers']} answers", tokens, cached, *costs])


skills = asking("kode/skills/list")
"""Asks for the skills that the model can load."""


def skill_lines(found: Json) -> Iterator[str]:
    """Yield one line per skill, then the problems of invalid ones."""
    yield from (one_line(f"{skill['id']}: {skill['description']}") for skill in found["skills"])
    yield from (one_line(f"! {problem['message']}") for problem in found["problems"])
    if not found["skills"]:
        yield "There are no skills."


async def memory(ask: Ask, options: argparse.Namespace) -> Json:
    """Accept and reject memories if asked to; return all of them."""
    if options.accept or options.reject:
        decisions = [{"memoryId": one, "action": "accept"} for one in options.accept or ()]
        decisions += [{"memoryId": one, "action": "reject"} for one in options.reject or ()]
        await ask("kode/memory/decide", {"decisions": decisions})
    return cast(Json, await ask("kode/memory/list", {}))


def memory_lines(found: Json) -> Iterator[str]:
    """Yield one line per memory."""
    states = {"candidate": "waits", "accepted": "remembered"}
    for one in found["memories"]:
        yield one_line(f"{one['memoryId']}  {states[one['state']]}  {one['content']}")
    if not found["memories"]:
        yield "Nothing is remembered, and nothing waits to be."


models = asking("kode/models/list")
"""Asks the hosts for the models to choose from."""


def model_lines(found: Json) -> Iterator[str]:
    """Yield the logical models with their candidates, then the models of each provider."""
    for logical in found["logical"]:
        mark = "*" if logical["name"] == found["default"] else " "
        behind = ", ".join(one["name"] for one in logical["candidates"])
        yield f"{mark} {logical['name']}: {behind}"
    for provider in found["providers"]:
        error = provider.get("error")
        yield one_line(f"{provider['name']} ({provider['host']})")
        if error is not None:
            yield one_line(f"    ! {error['message']}")
        elif not provider.get("lists", True):
            yield "    lists no models: name one that it serves"
        for model in provider["models"] if error is None else ():
            yield "    " + "  ".join(_model_cells(model))


def _model_cells(model: Json) -> Sequence[str]:
    cells = [model["name"]]
    if "contextWindow" in model:
        cells.append(f"{model['contextWindow']:,} tokens")
    if "price" in model:
        price = model["price"]
        cells.append(f"{price['input']:g}/{price['output']:g} {price['currency']} per million")
    return [*cells, *(["gone"] if model.get("retired") else [])]


def host_checks(env_file: str | None) -> list[tuple[bool, str]]:
    """Ask each host with a key for its models; return what is right and wrong. Raises KodeError."""
    found = asyncio.run(_asked(models, argparse.Namespace(env_file=env_file)))
    checks: list[tuple[bool, str]] = []
    for one in found["providers"]:
        error = one.get("error")
        # A host without a key was not asked, so it is left out; other checks report missing keys.
        if error is not None and "There is no API key" not in error["message"]:
            checks.append((False, one_line(f"{one['name']}: {error['message']}")))
        elif error is None and not one.get("lists", True):
            text = f"{one['name']}: {one['host']} answers; it lists no models."
            checks.append((True, one_line(text)))
    return [*checks, *((False, one_line(text)) for text in _unknown_model(found))]


def _unknown_model(found: Json) -> Iterator[str]:
    """Yield what is wrong with a model of the settings that its host does not list."""
    wanted = str(found["default"])
    provider, _, model_id = wanted.rpartition("/")
    logical = any(one["name"] == wanted for one in found["logical"])
    names = {
        one["name"] for row in found["providers"] for one in row["models"] if one.get("offered")
    }
    ids = {name: name.partition("/")[2] for name in names}
    # A family, such as `claude-opus`, is part of the ids of its models.
    if logical or wanted in ids.values() or any(model_id in name for name in names):
        return
    listed = {name for name in names if name.startswith(f"{provider}/")} if provider else names
    if listed:
        near = get_close_matches(wanted, [*listed, *(ids[name] for name in listed)], 1)
        hint = f" Did you mean {near[0]}?" if near else " `kode-sidecar models` shows those listed."
        yield f"model: no host lists {wanted}, which the setting `model` names.{hint}"


def offered_models(provider: str, environment: Mapping[str, str]) -> list[str]:
    """Return the models that a host lists. Raises KodeError with the host's error."""
    found = asyncio.run(_asked(models, argparse.Namespace(), environment))
    row = next(one for one in found["providers"] if one["name"] == provider)
    if "error" in row:
        raise KodeError(row["error"]["code"], row["error"]["message"])
    return [model["name"] for model in row["models"] if model.get("offered")]


def whole_id(options: argparse.Namespace) -> str:
    """Return the full session id for the option `session`. Raises KodeError."""

    async def find(ask: Ask, options: argparse.Namespace) -> Json:
        return {"id": await _whole_id(ask, options.session)}

    return str(asyncio.run(_asked(find, options))["id"])


def latest_session(options: argparse.Namespace) -> str:
    """Return the most recently written session of the folder. Raises KodeError."""

    async def find(ask: Ask, options: argparse.Namespace) -> Json:
        del options
        return cast(Json, await ask("kode/session/list", {"limit": 500}))

    listed = asyncio.run(_asked(find, options))["sessions"]
    found = [one for one in listed if "kind" not in one]  # a job's session cannot be continued
    if not found:
        raise KodeError("SessionNotFound", "There is no session of this folder to go on in.")
    return str(found[0]["sessionId"])


def sessions_command(options: argparse.Namespace) -> int:
    """Run `sessions`: list, search, show, export, fork, delete, migrate. Raises KodeError."""
    if options.action == "migrate":
        # Imported late: it works on the files directly, without a sidecar.
        from kode_sidecar.terminal.cli.migrate import migrate_command  # noqa: PLC0415

        return migrate_command(options.to, options.env_file, dry_run=options.dry_run)
    work, lines = {
        "list": (all_sessions, session_lines),
        "search": (all_sessions, session_lines),
        "show": (one_session, session_text),
        "export": (exported, exported_text),
        "fork": (forked, forked_line),
        "delete": (deleted, deleted_lines),
    }[options.action]
    return inquire(options, work, lines)


def inquiry_command(options: argparse.Namespace) -> int:
    """Run `memory`, `models`, `skills` or `usage`. Raises KodeError."""
    work, lines = {
        "memory": (memory, memory_lines),
        "models": (models, model_lines),
        "skills": (skills, skill_lines),
        "usage": (usage, usage_lines),
    }[options.command]
    return inquire(options, work, lines)
