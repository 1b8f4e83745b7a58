"""Findings of a code review in an editor without a plugin: diagnostics and code actions."""

from pathlib import Path

from tests.servers.plain.stock_client import stock_client
from tests.support.model_script import answer, text, tool_call
from tests.support.review_model import FAULT, changed_project, reviewing_model, reviews


async def test_findings_are_fixed_explained_and_dismissed_by_code_actions(tmp_path: Path) -> None:
    root = changed_project(tmp_path / "project")
    old, new = "for i in range(len(items) - 1):", "for i in range(len(items)):"
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": old, "new": new}]})
    other = {**FAULT, "quote": "return result", "startLine": 5, "endLine": 5, "title": "No type"}
    main = [
        *(*reviews(), answer(text("It leaves the last one out."))),
        *(answer(tool_call("read_file", {"path": "app.py"})), answer(edit), answer(text("Done."))),
        *(reviews()[0], answer(text("Reviewed again."))),
    ]
    found = [[FAULT, {**other, "severity": "info"}], [{**other, "severity": "info"}]]
    model = reviewing_model(main, lambda _: found.pop(0))
    async with stock_client(roots=[root], model=model) as stock:
        buffer = stock.world.editor.open(root / "app.py", language_id="python")
        assert "again" not in str(await stock.actions(buffer.uri, 0, 0))
        await stock.run("kode.verb", "review")
        await stock.until(lambda: stock.chat_has("Reviewed.\n\n## You"))
        first, second = await stock.until(lambda: stock.hunks(buffer.uri))
        assert (first["source"], first["severity"], first["code"]) == ("kode review", 1, "f1")
        assert first["message"] == "The last item is not counted\n\ntotal([1]) is 0."
        assert second["severity"] == 3

        stock.world.editor.type(buffer, 0, "# mine\n")
        await stock.until(lambda: stock.hunks(buffer.uri)[0]["range"]["start"]["line"] == 3)
        actions = await stock.actions(buffer.uri, 3, 3, diagnostics=stock.hunks(buffer.uri)[:1])
        assert [one["title"] for one in actions if "last item" in one["title"]] == [
            f"kode: {word}: The last item is not counted" for word in ("fix", "explain", "dismiss")
        ]
        await stock.choose(actions, "explain: The last")
        await stock.until(lambda: stock.chat_has("It leaves the last one out.\n\n## You"))
        assert "total([1]) is 0." in str(stock.world.asked()["messages"][-2]["content"])

        stock.answers.append("It is on purpose")
        await stock.choose(await stock.actions(buffer.uri, 5, 5), "dismiss: No type")
        await stock.until(lambda: len(stock.hunks(buffer.uri)) == 1)
        await stock.run("kode.finding", "open", "f2")
        await stock.until(lambda: len(stock.hunks(buffer.uri)) == 2)
        await stock.run("kode.finding", "dismiss", "f2", "types", "come", "later")
        await stock.until(lambda: len(stock.hunks(buffer.uri)) == 1)
        await stock.run("kode.finding", "praise", "f2")
        await stock.until(lambda: stock.said("is none of fix, explain, dismiss, resolve, open"))

        await stock.choose(await stock.actions(buffer.uri, 3, 3), "fix: The last")
        hunks = lambda: [one for one in stock.hunks(buffer.uri) if one["source"] == "kode"]  # noqa: E731
        await stock.until(hunks)
        await stock.choose(await stock.actions(buffer.uri, 3, 3), "accept this edit")
        await stock.until(lambda: not stock.hunks(buffer.uri))
        assert new in buffer.text

        await stock.choose(await stock.actions(buffer.uri, 0, 0), "review again")
        await stock.until(lambda: stock.chat_has("Reviewed again.\n\n## You"))
        assert not stock.hunks(buffer.uri)  # the fixed one is gone, the dismissed one stays so
        asked = [str(chat.body["messages"]) for chat in model.chats]
        assert any("The user dismissed these before" in one for one in asked)
