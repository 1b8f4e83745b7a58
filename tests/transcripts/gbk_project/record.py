"""A Chinese project in GBK: read, searched, edited on disk's text; what GBK lacks is refused."""

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set
from tests.support.transcripts import Stage

MENU = "# 茶铺的菜单\r\n价格 = 12\r\n名字 = '龙井'\r\n"
FILES = {"菜单.py": MENU.encode("gbk"), "说明/读我.txt": "价格都在菜单里。\n".encode("gbk")}
ENVIRONMENT = {"KODE_FILE_ENCODING": "gbk"}
HANDSHAKE = {"locale": "zh-CN"}


def edit(old: str, new: str) -> object:
    return tool_call("propose_edit", {"path": "菜单.py", "edits": [{"old": old, "new": new}]})


RESPONSES = (
    answer(
        tool_call("read_file", {"path": "菜单.py"}), tool_call("search_code", {"query": "价格"})
    ),
    answer(edit("名字 = '龙井'", "名字 = '龙井 🍵'")),
    answer(edit("价格 = 12", "价格 = 15")),
    answer(text("改好了。")),
)


async def play(stage: Stage) -> None:
    world = stage.world
    world.editor.load = lambda path: path.read_bytes().decode("gbk")
    session = await world.session(model="kimi-k2.6")
    await world.turn(session, "涨价到十五，名字后面加个茶杯")
    await world.decide(only_change_set(session))
