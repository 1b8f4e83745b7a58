"""What the chat says between the lines of the conversation, in two languages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """Placeholders are `str.format` fields."""

    welcome: str
    help: str
    prompt: str
    more: str
    hunk: str
    decide: str
    decide_help: str
    allow: str
    choose: str
    choose_many: str
    waiting: str
    outcome: str
    written: str
    moved: str
    deleted: str
    not_read: str
    not_written: str
    cancelling: str
    leave: str
    unknown_command: str
    model: str
    models: str
    model_set: str
    mode: str
    mode_set: str
    mode_wrong: str
    session: str
    session_new: str
    nothing_waits: str
    resume: str
    failed: str
    no_start: str


ENGLISH = Words(
    welcome="kode-sidecar {version} · {model} · {mode} · {root} · /help",
    help="""\
/model [NAME]    show or choose the model of the next turns
/mode [NAME]     show or choose what becomes of proposed edits: {modes}
/session [new]   show this session and where its records are, or begin another one
/review          decide what still waits
/continue        let the model go on after its limit of tool rounds
/help            this
/quit            leave; so does Ctrl-D
A backslash at the end of a line continues the prompt on the next one.
Ctrl-C cancels the turn; a second one within two seconds leaves.""",
    prompt="you › ",
    more="  … ",
    hunk="hunk {number} of {count} · {path}",
    decide="accept? [y/n/a/r/q/?] ",
    decide_help="""\
y  accept    n  reject    a  accept this and all that follow (not the sensitive ones)
r  reject this and all that follow    q  decide later: /review
Words after y, n or r are a comment for the model: n the jiao stay""",
    allow="allow? y = once, s = in this session, anything else = no: ",
    choose="number of your choice, nothing = none: ",
    choose_many="numbers of your choices, nothing = none: ",
    waiting="{count} hunk(s) wait: /review",
    outcome="applied: {applied} · rejected: {rejected} · not applied: {lost}",
    written="{path} is written",
    moved="{path} is moved to {target}",
    deleted="{path} is deleted",
    not_read="{path} cannot be read: {error}",
    not_written="{path} cannot be written: {error}",
    cancelling="cancelling …",
    leave="Ctrl-C once more, Ctrl-D or /quit leaves",
    unknown_command="there is no command {name}; /help lists them",
    model="model: {model}",
    models="there are {models}",
    model_set="the next turns ask {model}",
    mode="mode: {mode}",
    mode_set="the next turns have the mode {mode}",
    mode_wrong="there is no mode {mode}; there are {modes}",
    session="session {id} · {title}\nrecords: {folder}",
    session_new="a new session: {id}",
    nothing_waits="nothing waits for a decision",
    resume="the model can go on: /continue",
    failed="{error}",
    no_start="The sidecar cannot be started: {error}",
)

CHINESE = Words(
    welcome="kode-sidecar {version} · {model} · {mode} · {root} · /help",
    help="""\
/model [名称]    查看或选择之后各轮使用的模型
/mode [名称]     查看或选择如何处理提出的修改：{modes}
/session [new]   查看当前会话及其记录所在处，或开始新的会话
/review          决定尚未处理的修改
/continue        达到工具轮数上限后让模型继续
/help            显示本说明
/quit            退出；Ctrl-D 也可以
行尾加反斜杠，可在下一行继续输入。
Ctrl-C 取消本轮；两秒内再按一次则退出。""",
    prompt="你 › ",
    more="  … ",
    hunk="修改 {number}/{count} · {path}",
    decide="采纳？[y/n/a/r/q/?] ",
    decide_help="""\
y  采纳    n  拒绝    a  采纳这一处和之后的全部（敏感文件除外）
r  拒绝这一处和之后的全部    q  以后再决定：/review
y、n、r 后面可以写给模型的意见：n 角要保留""",
    allow="允许吗？y = 仅此一次，s = 本会话内，其他 = 不允许：",
    choose="输入选项编号，直接回车 = 不选：",
    choose_many="输入选项编号（可多个），直接回车 = 不选：",
    waiting="还有 {count} 处修改待定：/review",
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
    session_new="新会话：{id}",
    nothing_waits="没有待定的修改",
    resume="可以让模型继续：/continue",
    failed="{error}",
    no_start="无法启动 sidecar：{error}",
)


def words_for(locale: str) -> Words:
    """Chinese for `zh…`, English for anything else."""
    return CHINESE if locale.lower().startswith("zh") else ENGLISH
