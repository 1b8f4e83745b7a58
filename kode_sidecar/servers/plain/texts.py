"""What the user reads, in English and Chinese: stock editors have no texts of ours."""

from collections.abc import Callable

_TEXTS: dict[str, tuple[str, str]] = {
    "you": ("You", "我"),
    "send": ("kode: send", "kode：发送"),
    "stop": ("kode: stop", "kode：停止"),
    "chat": ("kode: open the chat", "kode：打开对话"),
    "verb": ("kode: {name}", "kode：{name}"),
    "fix": ("Fix with kode: {name}", "让 kode 修复：{name}"),
    "comment": ("kode: do what this comment asks: {name}", "kode：照这条注释去做：{name}"),
    "accept": ("kode: accept this edit", "kode：接受这处修改"),
    "reject": ("kode: reject this edit", "kode：拒绝这处修改"),
    "show": ("kode: show this edit", "kode：查看这处修改"),
    "accept_file": (
        "kode: accept all {count} edits in this file",
        "kode：接受本文件的全部 {count} 处修改",
    ),
    "accept_all": (
        "kode: accept all {count} pending edits",
        "kode：接受全部 {count} 处待定的修改",
    ),
    "undo": ("kode: undo the edits of the last turn", "kode：撤销上一轮的修改"),
    "proposed": ("kode proposes:\n{text}", "kode 建议：\n{text}"),
    "deletes": ("kode proposes to delete these lines", "kode 建议删除这些行"),
    "file_create": ("kode proposes this new file:\n{text}", "kode 建议新建这个文件：\n{text}"),
    "file_delete": ("kode proposes to delete this file", "kode 建议删除这个文件"),
    "file_rename": ("kode proposes to rename this file to {text}", "kode 建议改名为 {text}"),
    "waiting": (
        "{count} edits wait for your decision, in {files}. Code actions there accept or reject.",
        "{count} 处修改等你决定：{files}。在那里用代码操作接受或拒绝。",
    ),
    "sensitive": (
        "{path} is sensitive ({reason}). Apply the edit?",
        "{path} 是敏感文件（{reason}）。要应用这处修改吗？",
    ),
    "finding_fix": ("kode: fix: {name}", "kode：修复：{name}"),
    "finding_explain": ("kode: explain: {name}", "kode：解释：{name}"),
    "finding_dismiss": ("kode: dismiss: {name}", "kode：忽略：{name}"),
    "review_again": ("kode: review again", "kode：重新审查"),
    "ask_fix": ("Fix this finding, and only it.", "请修复这个发现，不要改动别的。"),
    "ask_explain": ("Explain this finding.", "请解释这个发现。"),
    "why_dismiss": ("Why is {name} no fault?", "{name} 为什么不是问题？"),
    "on_purpose": ("It is on purpose", "有意为之"),
    "is_wrong": ("It is wrong", "判断有误"),
    "not_now": ("Not worth it", "不值得改"),
    "yes": ("Apply", "应用"),
    "no": ("No", "不"),
    "trust": (
        "Do you trust {folder}? Its notes (AGENTS.md), skills and tool servers are used only then. "
        "To answer for good, name it under `trusted_folders` in config.yaml.",
        "信任 {folder} 吗？只有信任后才会使用其中的说明（AGENTS.md）、技能和工具服务器。"
        "想一次说定，就把它写进 config.yaml 的 `trusted_folders`。",
    ),
    "trust_no": ("Do not trust", "不信任"),
    "trust_yes": ("Trust", "信任"),
    "nothing_pending": ("No edit waits for a decision.", "没有等待决定的修改。"),
    "nothing_applied": ("No edit of kode is applied.", "没有已应用的修改。"),
    "nothing_to_send": (
        "Write your question below the last heading first.",
        "请先在最后一个标题下面写下问题。",
    ),
    "not_applied": (
        "{count} edits were not applied: {reason}",
        "{count} 处修改没有应用：{reason}",
    ),
    "text_changed": ("the text there changed", "那里的文字已经变了"),
    "undone": ("{count} edits were undone.", "撤销了 {count} 处修改。"),
    "stopped": ("Stopped.", "已停止。"),
    "not_running": ("Nothing is running.", "没有正在运行的任务。"),
    "which_session": ("Which conversation?", "打开哪个对话？"),
    "which_model": ("Which model? It is {name} now.", "用哪个模型？现在是 {name}。"),
    "model_now": ("The model is now {name}.", "模型现在是 {name}。"),
    "failed": ("kode: {reason}", "kode：{reason}"),
    "see_chat": ("{text}\n\n(the whole conversation: {path})", "{text}\n\n（完整对话：{path}）"),
    "tick": ("Tick one of these lines:", "请勾选其中一行："),
}


class Texts:
    """Gives each text in the language that the settings name at that moment."""

    def __init__(self, locale: Callable[[], str]) -> None:
        self._locale = locale

    @property
    def is_english(self) -> bool:
        """Whether the texts are English now."""
        return self._locale() == "en"

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its values filled in."""
        return _TEXTS[key][0 if self.is_english else 1].format(**values)

    def all_of(self, key: str) -> tuple[str, str]:
        """Return a text in all languages: a document may be older than the present setting."""
        return _TEXTS[key]
