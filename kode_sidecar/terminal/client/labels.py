"""The words a terminal shows around the conversation, in two languages."""

import locale
import os
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Labels:
    """English, unless another language is given. Placeholders are `str.format` fields."""

    you: str = "you"
    reminder: str = "note to the model"
    thinking: str = "thinking"
    failed: str = "failed"
    cancelled: str = "cancelled"
    denied: str = "denied"
    earlier_lines: str = "… {count} lines before"
    dropped: str = "this attempt broke off and is discarded"
    whole_again: str = "part of the stream was lost; the whole text:"
    proposed: str = "{count} change(s) proposed in {path}"
    hunk: str = "hunk {number} of {count} · {path}"
    whole_files: Mapping[str, str] = field(
        default_factory=lambda: {
            "create": "a new file",
            "rename": "to be moved to {target}",
            "delete": "to be deleted",
        }
    )
    hunk_states: Mapping[str, str] = field(
        default_factory=lambda: {
            "proposed": "proposed",
            "applied": "applied",
            "rejected": "rejected",
            "replaced": "replaced by your text",
            "superseded": "superseded",
            "stale": "stale",
            "conflict": "in conflict with your text",
            "diverged": "not verified: the editor's text differs",
            "undone": "undone",
        }
    )
    not_applied: str = "not applied: {reason}"
    flags: str = "mind: {flags}"
    question: str = "asks"
    scout: str = "scout {title}: {state} · {calls} calls · {seconds} s"
    scout_states: Mapping[str, str] = field(
        default_factory=lambda: {
            "reporting": "told to report",
            "done": "reported",
            "failed": "failed",
            "timed_out": "out of time",
            "cancelled": "cancelled",
        }
    )
    turn: str = "turn ended: {reason}"
    stop_reasons: Mapping[str, str] = field(
        default_factory=lambda: {
            "end_turn": "done",
            "cancelled": "cancelled",
            "max_tool_rounds": "limit of tool rounds reached",
            "budget": "the budget is used up",
            "max_tokens": "limit of tokens reached",
            "refusal": "the model refused",
            "error": "error",
            "interrupted": "interrupted",
        }
    )
    usage: str = "{input} tokens in ({cached} cached), {output} out"
    usage_unknown: str = "tokens unknown"


ENGLISH = Labels()

CHINESE = Labels(
    you="你",
    reminder="给模型的提示",
    thinking="思考",
    failed="失败",
    cancelled="已取消",
    denied="被拒绝",
    earlier_lines="…… 前面还有 {count} 行",
    dropped="这次回答中断，已丢弃",
    whole_again="部分内容丢失，完整文本如下：",
    proposed="{path} 中提议 {count} 处修改",
    hunk="修改 {number}/{count} · {path}",
    whole_files={"create": "新建文件", "rename": "移动到 {target}", "delete": "删除文件"},
    hunk_states={
        "proposed": "待定",
        "applied": "已应用",
        "rejected": "已拒绝",
        "replaced": "已换成你的文本",
        "superseded": "被新的修改取代",
        "stale": "已过期",
        "conflict": "与你的文本冲突",
        "diverged": "未通过核对：编辑器中的文本不同",
        "undone": "已撤销",
    },
    not_applied="未应用：{reason}",
    flags="注意：{flags}",
    question="询问",
    scout="侦察 {title}：{state} · {calls} 次调用 · {seconds} 秒",
    scout_states={
        "reporting": "须立即报告",
        "done": "已报告",
        "failed": "失败",
        "timed_out": "超时",
        "cancelled": "已取消",
    },
    turn="本轮结束：{reason}",
    stop_reasons={
        "end_turn": "完成",
        "cancelled": "已取消",
        "max_tool_rounds": "达到工具轮数上限",
        "budget": "预算已用完",
        "max_tokens": "达到 token 上限",
        "refusal": "模型拒绝回答",
        "error": "出错",
        "interrupted": "被中断",
    },
    usage="输入 {input} token（缓存 {cached}），输出 {output}",
    usage_unknown="token 数未知",
)


def labels_for(language: str) -> Labels:
    """Return Chinese labels for `zh…`, English ones for anything else."""
    return CHINESE if language.lower().startswith("zh") else ENGLISH


def system_locale() -> str:
    """Return `zh` on a Chinese system, else `en`."""
    names = [os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    name = next((name for name in names if name), "") or locale.getlocale()[0] or ""
    return "zh" if name.lower().startswith(("zh", "chinese")) else "en"
