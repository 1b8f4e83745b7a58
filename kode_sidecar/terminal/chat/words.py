"""The chat's own texts around the conversation, in two languages."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Words:
    """English, unless another language is given. Placeholders are `str.format` fields."""

    welcome: str = "kode-sidecar {version} · {model} · {mode} · {root} · /help"
    help: str = """\
/model [NAME]    show or choose the model of the next turns
/mode [NAME]     show or choose what becomes of proposed edits: {modes}; Shift-Tab: the next one
/effort [NAME]   show or choose how hard the model thinks: off, low, medium, high, max
/context         what the model is told next; /context leave|pin|restore NUMBERS, /context undo
!COMMAND         run it in your shell; the model sees what it printed with your next prompt
/new             begin a new session; so does /clear
/compact         let the model sum the conversation up now
/diff            what this session has proposed and changed
/output [NUMBER] all that the last tool gave, or the one NUMBER calls before; so does Ctrl-O
/session         show this session: where its records are, and your prompts
/session list    the latest sessions of this folder
/session ID      go on in one of them (its first letters will do)
/fork [NUMBER]   go on in a copy of this session, or in one that ends before that prompt
/review          decide what still waits; /review WORDS calls the verb of this name
f [NUMBER]       what a code review found; f 3 fixes it; f 3 explain; f 3 dismiss WHY; f 3 done|open
/keep            keep all that the mode keep has applied; /review goes through it hunk by hunk
/undo [skip]     take back what was applied last; again: what was before (skip: not what conflicts)
/redo            put back what was taken back last
/usage           tokens and money of this session and of today
/skills          the skills that the model can load
/mcp             your MCP servers; /mcp start|allow|refuse NAME; /NAME:PROMPT asks by one of theirs
/memory          what it is to remember; /memory accept|reject NUMBERS (or all that waits)
/continue        let the model go on after its limit of tool rounds
/help            this
/quit            leave; so does Ctrl-D
Alt-Enter, Ctrl-J or a backslash before Enter begins a new line; Ctrl-G opens your $EDITOR.
@path names a file or an image, @server:uri a resource of an MCP server.
While a turn runs Enter tells it something; Tab keeps it for later.
Ctrl-C cancels the turn; a second one within two seconds leaves."""
    prompt: str = "you › "
    more: str = "  … "
    hint: str = "ask, or /help · @ names a file"
    hint_running: str = "Enter tells the running turn · Tab is for later · Ctrl-C cancels"
    queued: str = "next › "
    reported: str = "told › "
    pasted: str = "[pasted {number}: {lines} lines]"
    more_lines: str = "… {count} more lines"
    working: str = "working"
    retrying: str = "asks again in {seconds} s"
    context: str = "context {percent} %"
    budget: str = "budget of the {scope}: {spent} of {limit}"
    budget_scopes: Mapping[str, str] = field(
        default_factory=lambda: {"turn": "turn", "session": "session", "day": "day"}
    )
    unread_image: str = "not sent, for it cannot be read or is too large: {path}"
    hunk: str = "hunk {number} of {count} · {path}"
    decide: str = "accept? [y/n/a/r/e/s/l/q/?] "
    keep: str = "keep? [y/n/a/r/s/l/q/?] "
    decide_help: str = """\
y  accept    n  reject    a  accept this and all of this turn (not sensitive files)
r  reject this and all of this turn    e  edit it in $EDITOR, then accept
s  skip this one    l  list the files    q  decide later: /review
Words after y, n, r or e are a comment for the model: n the jiao stay"""
    rest: Mapping[str, str] = field(
        default_factory=lambda: {
            "a": "all other edits of this turn are accepted, but for sensitive files",
            "r": "all other edits of this turn are rejected",
        }
    )
    edit_help: str = """\
Above is the new text: change it, save and leave. From this line on all is dropped.
Without a change (:q!) you are asked again. It is to stand for:"""
    unchanged: str = "nothing was changed in the editor"
    no_editor: str = (
        "no editor could be used, or it ended with an error; VISUAL or EDITOR names yours"
    )
    allow: str = "allow? y = once, s = in this session, anything else = no: "
    choose: str = "number of your choice, nothing = none: "
    choose_many: str = "numbers of your choices, nothing = none: "
    waiting: str = "{count} hunk(s) wait: /review"
    to_keep: str = "{count} hunk(s) are applied and saved: /keep, /undo, or /review one by one"
    outcome: str = "applied: {applied} · rejected: {rejected} · not applied: {lost}"
    written: str = "{path} is written"
    moved: str = "{path} is moved to {target}"
    deleted: str = "{path} is deleted"
    not_read: str = "{path} cannot be read: {error}"
    not_written: str = "{path} cannot be written: {error}"
    cancelling: str = "cancelling …"
    leave: str = "Ctrl-C once more, Ctrl-D or /quit leaves"
    unknown_command: str = "there is no command {name}; /help lists them"
    model: str = "model: {model}"
    models: str = "there are {models}"
    model_set: str = "the next turns ask {model}"
    mode: str = "mode: {mode}"
    mode_set: str = "the next turns have the mode {mode}"
    mode_wrong: str = "there is no mode {mode}; there are {modes}"
    session: str = "session {id} · {title}\nrecords: {folder}"
    way_back: str = "to go on with it: {command}"
    session_new: str = "a new session: {id}"
    session_unknown: str = (
        "no session of this folder has an id that begins with {id}; /session list"
    )
    session_none: str = "there is no session of this folder to go on in"
    session_many: str = "several sessions have an id that begins with {id}; type more of it"
    forked: str = "from here on in a copy: {id}"
    fork_wrong: str = "there is no prompt {number}; /session lists them"
    compacting: str = "the model sums the conversation up …"
    compacted: str = (
        "{count} message(s) are summed up: about {before} tokens became {after}; "
        "/context undo takes it back"
    )
    no_changes: str = "this session has proposed and changed nothing"
    no_output: str = "there is no such output; /output 1 is the last one"
    own_ended: str = "ended with {code}"
    own_stopped: str = "stopped"
    own_note: str = "I ran `{command}` in this folder ({ended}). What it printed:"
    own_secret: str = "The output is not sent to the model: it holds {what}."
    undone: str = "taken back: {count} hunk(s) · {files}"
    redone: str = "put back: {count} hunk(s) · {files}"
    nothing_applied: str = "nothing is applied that could be taken back"
    nothing_undone: str = "nothing was taken back"
    undo_conflicts: str = (
        "{count} hunk(s) were changed since, so nothing is taken back; "
        "/undo skip leaves them as they are"
    )
    usage: str = "{name}: {answers} answer(s) · {input} tokens in ({cached} cached), {output} out"
    usage_session: str = "this session"
    usage_today: str = "today, all sessions"
    no_skills: str = "there are no skills"
    effort: str = "effort: {effort}"
    effort_wrong: str = "there is no effort {effort}; there are: {efforts}"
    context_next: str = "next request: about {tokens} tokens{window}"
    context_window: str = " of {window}"
    context_cached: str = "cached: {tokens} tokens, at least until {until}"
    context_cost: str = (
        "reading it costs about {amount} {currency}, {uncached} if nothing is cached"
    )
    context_how: str = "/context leave|pin|restore NUMBERS, or /context undo for the last summary"
    context_edited: str = (
        "about {before} tokens became {after}; the host reads {reread} of them anew"
    )
    mcp_how: str = "/mcp start|allow|refuse NAME · /server:prompt · @server:uri"
    mcp_none: str = "there are no MCP servers; `kode-sidecar mcp add` makes one"
    mcp_states: Mapping[str, str] = field(
        default_factory=lambda: {
            "unapproved": "waits for your yes",
            "refused": "refused by you",
            "idle": "not started",
            "starting": "starting",
            "ready": "runs",
            "failed": "failed",
        }
    )
    memory_waits: str = "waits"
    memory_kept: str = "remembered"
    memory_none: str = "nothing is remembered, and nothing waits to be"
    memory_how: str = (
        "/memory accept NUMBERS, /memory reject NUMBERS (which forgets), or all that waits"
    )
    memory_accepted: str = "remembered from now on: {count}"
    memory_rejected: str = "forgotten: {count}"
    findings_how: str = "f 3 fixes · f 3 explain · f 3 dismiss WHY · f 3 done|open · f lists"
    no_findings: str = "nothing that a review found is open"
    fix_finding: str = "Fix this finding, and only it."
    explain_finding: str = "Explain this finding."
    nothing_waits: str = "nothing waits for a decision"
    signals: Mapping[str, str] = field(
        default_factory=lambda: {
            "done": "the turn is done",
            "blocked": "it waits for your answer",
            "failed": "the turn has failed",
        }
    )
    resume: str = "the model can go on: /continue"
    failed: str = "{error}"
    no_start: str = "The sidecar cannot be started: {error}"


ENGLISH = Words()

CHINESE = Words(
    welcome="kode-sidecar {version} · {model} · {mode} · {root} · /help",
    help="""\
/model [名称]    查看或选择之后各轮使用的模型
/mode [名称]     查看或选择如何处理提出的修改：{modes}；Shift-Tab 换到下一个
/effort [名称]   查看或选择模型的思考强度：off、low、medium、high、max
/context         模型接下来看到的内容；/context leave|pin|restore 编号，/context undo
!命令            在您的 shell 中运行；模型随下一个提问看到它的输出
/new             开始新的会话；/clear 也可以
/compact         让模型现在就总结对话
/diff            本会话提出和改动的内容
/output [编号]   上一个工具的全部输出，或往前数第几个；按 Ctrl-O 也可以
/session         查看当前会话：记录所在处，以及您的提问
/session list    列出此文件夹最近的会话
/session ID      继续其中一个（ID 的前几位即可）
/fork [编号]     在当前会话的副本中继续，或从该提问之前分出
/review          决定尚未处理的修改；/review 加文字则调用同名指令
f [编号]         代码评审的发现；f 3 修复；f 3 explain 解释；f 3 dismiss 理由；f 3 done|open
/keep            保留 keep 模式已应用的全部修改；/review 逐处决定
/undo [skip]     撤销最近应用的修改；再次输入则继续往前（skip：略过有冲突的）
/redo            恢复最近撤销的修改
/usage           当前会话与今天的 token 用量和费用
/skills          模型可以加载的技能
/mcp             您的 MCP 服务器；/mcp start|allow|refuse 名称；/名称:提示 使用其中的提示
/memory          要记住的内容；/memory accept|reject 编号（或 all：全部待定的）
/continue        达到工具轮数上限后让模型继续
/help            显示本说明
/quit            退出；Ctrl-D 也可以
Alt-Enter、Ctrl-J 或行尾的反斜杠加 Enter 换行；Ctrl-G 打开 $EDITOR。
@路径 引用文件或图片，@服务器:URI 引用资源。一轮进行中按 Enter 可补充说明，按 Tab 则排到下一轮。
Ctrl-C 取消本轮；两秒内再按一次则退出。""",
    prompt="你 › ",
    more="  … ",
    hint="请提问，或输入 /help · 用 @ 引用文件",
    hint_running="Enter 告诉当前这一轮 · Tab 排到下一轮 · Ctrl-C 取消",
    queued="下一轮 › ",
    reported="已告知 › ",
    pasted="[粘贴 {number}：{lines} 行]",
    more_lines="… 还有 {count} 行",
    working="处理中",
    retrying="{seconds} 秒后重试",
    context="上下文 {percent} %",
    budget="{scope}预算：{spent} / {limit}",
    budget_scopes={"turn": "本轮", "session": "会话", "day": "今日"},
    unread_image="图片无法读取或过大，未发送：{path}",
    hunk="修改 {number}/{count} · {path}",
    decide="采纳？[y/n/a/r/e/s/l/q/?] ",
    keep="保留？[y/n/a/r/s/l/q/?] ",
    decide_help="""\
y  采纳    n  拒绝    a  采纳这一处和本轮其余的（敏感文件除外）
r  拒绝这一处和本轮其余的    e  用 $EDITOR 修改后采纳
s  跳过这一处    l  列出文件    q  以后再决定：/review
y、n、r、e 后面可以写给模型的意见：n 角要保留""",
    rest={
        "a": "本轮其余的修改全部采纳，敏感文件除外",
        "r": "本轮其余的修改全部拒绝",
    },
    edit_help="""\
以上是新文本：修改、保存并退出即可。从这一行起的内容都会去掉。
不作修改（:q!）会再次询问。它将取代：""",
    unchanged="在编辑器里没有作任何修改",
    no_editor="编辑器无法启动，或以错误退出；请用 VISUAL 或 EDITOR 指定您的编辑器",
    allow="允许吗？y = 仅此一次，s = 本会话内，其他 = 不允许：",
    choose="输入选项编号，直接回车 = 不选：",
    choose_many="输入选项编号（可多个），直接回车 = 不选：",
    waiting="还有 {count} 处修改待定：/review",
    to_keep="{count} 处修改已应用并保存：/keep 保留，/undo 撤销，/review 逐处决定",
    outcome="已应用：{applied} · 已拒绝：{rejected} · 未能应用：{lost}",
    written="已写入 {path}",
    moved="已将 {path} 移到 {target}",
    deleted="已删除 {path}",
    not_read="无法读取 {path}：{error}",
    not_written="无法写入 {path}：{error}",
    cancelling="正在取消 …",
    leave="再按一次 Ctrl-C、Ctrl-D 或输入 /quit 退出",
    unknown_command="没有命令 {name}；/help 列出全部命令",
    model="模型：{model}",
    models="可选 {models}",
    model_set="之后各轮使用 {model}",
    mode="模式：{mode}",
    mode_set="之后各轮使用模式 {mode}",
    mode_wrong="没有模式 {mode}；可选 {modes}",
    session="会话 {id} · {title}\n记录：{folder}",
    way_back="继续此会话：{command}",
    session_new="新会话：{id}",
    session_unknown="此文件夹没有以 {id} 开头的会话；/session list",
    session_none="此文件夹没有可以继续的会话",
    session_many="有多个以 {id} 开头的会话，请多输入几位",
    forked="此后在副本中继续：{id}",
    fork_wrong="没有编号为 {number} 的提问；/session 列出全部提问",
    compacting="模型正在总结对话 …",
    compacted="已总结 {count} 条消息：约 {before} 个 token 变为 {after} 个；/context undo 可撤销",
    no_changes="本会话没有提出或改动任何内容",
    no_output="没有这样的输出；/output 1 是最近的一个",
    own_ended="以 {code} 结束",
    own_stopped="已停止",
    own_note="我在这个文件夹里运行了 `{command}`（{ended}），输出如下：",
    own_secret="输出没有发给模型：其中含有 {what}。",
    undone="已撤销 {count} 处修改 · {files}",
    redone="已恢复 {count} 处修改 · {files}",
    nothing_applied="没有可以撤销的修改",
    nothing_undone="没有撤销过的修改",
    undo_conflicts="有 {count} 处修改之后又被改动，因此未作撤销；/undo skip 略过这些",
    usage="{name}：{answers} 次回答 · 输入 {input} token（缓存 {cached}），输出 {output}",
    usage_session="当前会话",
    usage_today="今天全部会话",
    no_skills="没有技能",
    effort="思考强度：{effort}",
    effort_wrong="没有思考强度 {effort}；可选：{efforts}",
    context_next="下一次请求：约 {tokens} 个 token{window}",
    context_window="，窗口 {window}",
    context_cached="已缓存：{tokens} 个 token，至少保留到 {until}",
    context_cost="读取费用约 {amount} {currency}；若没有缓存则为 {uncached}",
    context_how="/context leave|pin|restore 编号：略去、固定或恢复；/context undo 撤销最近的摘要",
    context_edited="约 {before} 个 token 变为 {after} 个；其中 {reread} 个由模型主机重新读取",
    mcp_how="/mcp start|allow|refuse 名称 · /服务器:提示 · @服务器:URI",
    mcp_none="没有 MCP 服务器；用 `kode-sidecar mcp add` 添加",
    mcp_states={
        "unapproved": "等待您同意",
        "refused": "已被您拒绝",
        "idle": "未启动",
        "starting": "启动中",
        "ready": "运行中",
        "failed": "失败",
    },
    memory_waits="待定",
    memory_kept="已记住",
    memory_none="没有记住的内容，也没有待定的",
    memory_how="/memory accept 编号、/memory reject 编号（也可忘掉已记住的），或 all：全部待定的",
    memory_accepted="从现在起记住：{count} 条",
    memory_rejected="已忘掉：{count} 条",
    findings_how="f 3 修复 · f 3 explain 解释 · f 3 dismiss 理由 · f 3 done|open · f 列出",
    no_findings="评审的发现都已处理",
    fix_finding="请修复这个发现，不要改动别的。",
    explain_finding="请解释这个发现。",
    nothing_waits="没有待定的修改",
    signals={"done": "本轮已完成", "blocked": "正在等待你的回答", "failed": "本轮失败"},
    resume="可以让模型继续：/continue",
    failed="{error}",
    no_start="无法启动 sidecar：{error}",
)


def words_for(locale: str) -> Words:
    """Return Chinese texts for `zh…`, English ones for anything else."""
    return CHINESE if locale.lower().startswith("zh") else ENGLISH
