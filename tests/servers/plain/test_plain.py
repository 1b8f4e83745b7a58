"""What an editor without a plugin gets, by the real process and a client of plain LSP."""

from pathlib import Path

from tests.servers.plain.stock_client import BARE, stock_client
from tests.support.files import write
from tests.support.model_script import answer, failure, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 3\n"
EDITS = [
    {"old": "    return 1", "new": "    return 11"},
    {"old": "    return 3", "new": "    return 2"},
]
PROPOSED = answer(text("Two things. "), tool_call("propose_edit", {"path": "a.py", "edits": EDITS}))


def project(folder: Path) -> Path:
    """A folder with one file."""
    root = folder / "项目 one"
    root.mkdir()
    file = root / "a.py"
    file.write_text(CODE, encoding="utf-8")
    return file


async def test_a_selection_is_explained_in_a_chat_document(tmp_path: Path) -> None:
    file = project(tmp_path)
    script = [answer(text("It gives one. 好 🙂", size=3))]
    async with stock_client(script, roots=[file.parent]) as stock:
        buffer = stock.world.editor.open(file, language_id="python")
        actions = await stock.actions(buffer.uri, 0, 1)
        assert {one["kind"] for one in actions} <= {"refactor.rewrite", "source.kode"}
        await stock.choose(actions, "Explain")
        await stock.until(lambda: stock.chat_has("It gives one. 好 🙂\n\n## You"))
        sent = str(stock.world.asked()["messages"][-1]["content"])
        assert "def one()" in sent
        assert "def two()" not in sent
        assert stock.chat().text.count("## kode · 1") == 1
        assert "/explain (a.py:1-2)" in stock.chat().text


async def test_a_diagnostic_of_another_server_is_fixed_hunk_by_hunk(tmp_path: Path) -> None:
    file = project(tmp_path)
    async with stock_client([PROPOSED, answer(text("Done."))], roots=[file.parent]) as stock:
        buffer = stock.world.editor.open(file, language_id="python")
        place = {"start": {"line": 5, "character": 4}, "end": {"line": 5, "character": 10}}
        problem = {"range": place, "message": "two() is 3", "source": "other"}
        actions = await stock.actions(buffer.uri, 5, 5, diagnostics=[problem], only=["quickfix"])
        assert [one["diagnostics"] for one in actions] == [[problem]]
        await stock.choose(actions, "two() is 3")
        await stock.until(lambda: len(stock.hunks(buffer.uri)) == 2)
        assert "two() is 3 (other)" in str(stock.world.asked(0)["messages"][-1]["content"])
        first, _ = stock.hunks(buffer.uri)
        assert (first["severity"], first["source"]) == (4, "kode")
        assert "return 11" in first["message"]
        await stock.until(lambda: stock.said("2 edits wait"))

        stock.world.editor.type(buffer, 0, "# mine\n")
        await stock.until(lambda: stock.hunks(buffer.uri)[0]["range"]["start"]["line"] == 2)
        line = stock.hunks(buffer.uri)[1]["range"]["start"]["line"]
        await stock.choose(await stock.actions(buffer.uri, line, line), "accept this edit")
        await stock.until(lambda: len(stock.hunks(buffer.uri)) == 1)
        assert buffer.text == "# mine\n" + CODE.replace("return 3", "return 2")
        await stock.choose(await stock.actions(buffer.uri, 2, 2), "reject this edit")
        await stock.until(lambda: not stock.hunks(buffer.uri))
        assert "return 11" not in buffer.text
        await stock.choose(await stock.actions(buffer.uri), "undo")
        await stock.until(lambda: stock.said("1 edits were undone"))
        assert buffer.text == "# mine\n" + CODE


async def test_all_edits_are_accepted_by_a_typed_command(tmp_path: Path) -> None:
    file = project(tmp_path)
    async with stock_client([PROPOSED, answer(text("Done."))], roots=[file.parent]) as stock:
        buffer = stock.world.editor.open(file, language_id="python")
        await stock.run("kode.ask", "make", "it", "right")
        await stock.until(lambda: len(stock.hunks(buffer.uri)) == 2)
        await stock.until(lambda: stock.said("2 edits wait"))
        params = {"textDocument": {"uri": buffer.uri}}
        lenses = await stock.world.client.request("textDocument/codeLens", params, HANG_SECONDS)
        assert len(lenses) == 6
        await stock.run("kode.accept")
        await stock.until(lambda: "return 11" in buffer.text and "return 2\n" in buffer.text)
        assert file.read_text(encoding="utf-8") == CODE  # the user saves, nobody else


async def test_a_chat_of_three_prompts_while_the_user_types(tmp_path: Path) -> None:
    file = project(tmp_path)
    script = [
        answer(text("First "), hold("more"), text("answer.")),
        answer(text("Second answer.")),
        answer(text("Third answer.")),
    ]
    async with stock_client(script, roots=[file.parent]) as stock:
        await stock.run("kode.chat")
        await stock.until(lambda: stock.chat_has("## You"))
        chat, editor = stock.chat(), stock.world.editor
        editor.type(chat, len(chat.text), "What is one?\n")
        await stock.choose(await stock.actions(chat.uri), "send")
        await stock.until(lambda: stock.chat_has("First"))
        editor.type(chat, len(chat.text), "\n\nmy note 记")
        stock.world.model.release("more")
        await stock.until(lambda: stock.chat_has("First answer.\n\n## You"))
        assert "my note 记" in chat.text
        for number, words in ((2, "Second"), (3, "Third")):
            editor.type(chat, len(chat.text), f"\n## You\n\nAnd {number}?\n")
            await stock.run("kode.send", chat.uri)
            await stock.until(lambda words=words: stock.chat_has(f"{words} answer.\n\n## You"))
        prompts = [m["content"] for m in stock.world.asked()["messages"] if m["role"] == "user"]
        assert ["And 3?" in str(one) for one in prompts][-1]
        assert "my note" not in str(prompts[0])
        assert [chat.text.count(f"## kode · {n}") for n in (1, 2, 3)] == [1, 1, 1]


async def test_without_documents_the_answer_is_a_message(tmp_path: Path) -> None:
    file = project(tmp_path)
    script = [answer(text("It gives one."))]
    async with stock_client(script, roots=[file.parent], capabilities=BARE) as stock:
        await stock.run("kode.ask", "what is it?")
        await stock.until(lambda: stock.said("It gives one."))
        assert stock.said(".md")
        (chat,) = (stock.world.home / "chats").iterdir()
        assert stock.said(str(chat))


async def test_a_document_opened_with_an_older_text_gets_the_rest(tmp_path: Path) -> None:
    file = project(tmp_path)
    script = [answer(text("Long "), hold("more"), text("story "), hold("end"), text("ends."))]
    async with stock_client(script, roots=[file.parent], capabilities=BARE) as stock:

        async def on_disk(words: str) -> Path:
            """Wait until the file has these words: no message says so."""
            folder = stock.world.home / "chats"
            while True:
                for one in folder.glob("*.md"):
                    if words in one.read_text("utf-8"):
                        return one
                await stock.world.client.request("kode/ping", {}, HANG_SECONDS)

        await stock.run("kode.ask", "tell")
        await on_disk("Long")
        stock.world.model.release("more")
        chat = await on_disk("story")  # by now it knows that the first piece is there
        older = chat.read_text("utf-8").replace("Long story ", "")
        stock.world.editor.open(chat, older, language_id="markdown")
        await stock.until(lambda: stock.chat_has("Long story"))
        stock.world.model.release("end")
        await stock.until(lambda: stock.chat_has("Long story ends.\n\n## You"))
        assert stock.chat().text.count("## kode") == 1


async def test_a_turn_is_stopped(tmp_path: Path) -> None:
    file = project(tmp_path)
    script = [answer(text("Long "), hold("never"), text("story"))]
    async with stock_client(script, roots=[file.parent]) as stock:
        await stock.run("kode.ask", "tell")
        await stock.until(lambda: stock.chat_has("Long"))
        await stock.choose(await stock.actions(stock.chat().uri), "stop")
        await stock.until(lambda: stock.chat_has("Stopped."))
        kinds = [one["value"]["kind"] for one in stock.progress]
        assert kinds[0] == "begin"
        assert kinds[-1] == "end"
        await stock.run("kode.stop")
        await stock.until(lambda: stock.said("Nothing is running"))


async def test_a_verb_is_filled_in_as_in_every_editor(tmp_path: Path) -> None:
    file = project(tmp_path)
    body = "Swap $1 for ${input:new}, as @a.py does.\n"
    first = answer(text("Long "), hold("more"), text("story."))
    script = [first, answer(text("Swapped.")), answer(text("Again."))]
    async with stock_client(script, roots=[file.parent]) as stock:
        write(stock.world.home, {"commands/swap.md": body})
        await stock.run("kode.ask", "begin")
        await stock.until(lambda: stock.chat_has("Long"))
        await stock.run("kode.verb", "swap", "one", "two")
        (journal,) = stock.world.home.glob("conversations/*/journal.jsonl")
        while b"turn.steered" not in journal.read_bytes():
            await stock.world.client.request("kode/ping", {}, HANG_SECONDS)
        stock.world.model.release("more")
        await stock.until(lambda: stock.chat_has("Swapped.\n\n## You"))
        steered = str(stock.world.asked()["messages"][-1]["content"])
        assert "Swap one for one two, as @a.py does." in steered
        assert "def two()" in steered
        await stock.run("kode.verb", "swap 三")
        await stock.until(lambda: stock.chat_has("Again."))
        assert "Swap 三 for 三" in str(stock.world.asked()["messages"])


async def test_a_comment_asks_only_when_chosen(tmp_path: Path) -> None:
    file = project(tmp_path)
    script = [answer(text("Yes."))]
    async with stock_client(script, roots=[file.parent]) as stock:
        source = "x = 1  # kode: make this 2\n<!-- kode: 改成三 -->\n"
        buffer = stock.world.editor.open(file, source, language_id="python")
        titles = [one["title"] for one in await stock.actions(buffer.uri, 1, 1)]
        assert any(title.endswith("改成三") for title in titles)
        actions = await stock.actions(buffer.uri, 0, 0)
        assert not stock.world.model.chats
        await stock.choose(actions, "make this 2")
        await stock.until(lambda: stock.chat_has("Yes."))
        assert "make this 2" in str(stock.world.asked()["messages"][-1]["content"])


async def test_a_sensitive_edit_asks_with_the_safe_answer_first(tmp_path: Path) -> None:
    file = project(tmp_path)
    (file.parent / ".github" / "workflows").mkdir(parents=True)
    flow = file.parent / ".github" / "workflows" / "ci.yml"
    flow.write_text("on: push\n", encoding="utf-8")
    call = tool_call(
        "propose_edit",
        {"path": ".github/workflows/ci.yml", "edits": [{"old": "on: push", "new": "on: pull"}]},
    )
    async with stock_client([answer(call), answer(text("ok"))], roots=[file.parent]) as stock:
        buffer = stock.world.editor.open(flow, language_id="yaml")
        stock.answers = ["Allow once"]
        await stock.run("kode.ask", "change it")
        await stock.until(lambda: stock.questions)
        titles = [one["title"] for one in stock.questions[0]["actions"]]
        assert "eject" in titles[0], titles
        await stock.until(lambda: "on: pull" in buffer.text)  # nobody is asked twice


async def test_without_message_requests_a_line_is_ticked(tmp_path: Path) -> None:
    file = project(tmp_path)
    (file.parent / "AGENTS.md").write_text("Say 你好.\n", encoding="utf-8")
    script = [answer(text("你好"))]
    async with stock_client(script, roots=[file.parent], has_requests=False) as stock:
        await stock.run("kode.ask", "hello")
        await stock.until(lambda: stock.chat_has("- [ ] Trust"))
        chat = stock.chat()
        stock.world.editor.type(chat, chat.text.index("- [ ] Trust") + 3, "x", delete=1)
        await stock.until(lambda: stock.chat_has("你好\n\n## You"))
        assert "Say 你好." in str(stock.world.asked()["messages"][0])


async def test_failures_are_messages(tmp_path: Path) -> None:
    async with stock_client(roots=[], environment={"KIMI_API_KEY": None}) as stock:
        await stock.run("kode.ask", "hello")
        await stock.until(lambda: stock.said("KIMI_API_KEY"))
        await stock.run("kode.verb", "sing")
        await stock.until(lambda: stock.said("no verb 'sing'"))
        await stock.run("kode.accept")
        await stock.until(lambda: stock.said("No edit waits"))
        await stock.run("kode.undo")
        await stock.until(lambda: stock.said("No edit of kode is applied"))


async def test_what_went_wrong_stands_once_in_the_chat(tmp_path: Path) -> None:
    file = project(tmp_path)
    async with stock_client(
        [failure(400, "invalid_request_error", "no such thing")], roots=[file.parent]
    ) as stock:
        await stock.run("kode.ask", "hello")
        await stock.until(lambda: stock.said("no such thing"))
        await stock.until(lambda: stock.chat().text.endswith("## You\n\n"))
        assert stock.chat().text.count("no such thing") == 1
