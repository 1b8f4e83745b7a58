"""What the demo says between the lines of the conversation, in two languages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Narration:
    """Placeholders are `str.format` fields."""

    stage: str
    recorded: str
    live: str
    connected: str
    opened: str
    prompt: str
    review: str
    decide: str
    comment: str
    outcome: str
    changed: str
    untouched: str
    records: str
    failed: str
    logs: str
    no_key: str
    wrong_turn: str
    wrong_hunks: str
    wrong_outcome: str
    wrong_disk: str
    wrong_exit: str


ENGLISH = Narration(
    stage="The sample project is in {project}",
    recorded="A recorded model answers over HTTP at {url}",
    live="The real service answers (the key comes from your environment)",
    connected="{server} {version} runs as process {pid}, protocol {protocol}, positions {encoding}",
    opened="The editor opens src/receipt.js with unsaved changes (CR LF, 中文, 🍵)",
    prompt=(
        "The receipt's total looks wrong: two Longjing cost as much as one. "
        "Please look at src/receipt.js and mend it."
    ),
    review="The model changed nothing. Its proposal, hunk by hunk, against the unsaved buffer:",
    decide="You accept hunk 1 and reject the others.",
    comment="The jiao stay: we do not round.",
    outcome="applied: {applied} · rejected: {rejected} · verified in the editor's text: {verified}",
    changed="The unsaved buffer, before and after:",
    untouched="All {lines} line ends are still CR LF; the file on disk is as it was.",
    records="The records are yours to look at:",
    failed="The demo failed: {error}",
    logs="Logs and records: {home}",
    no_key="set KIMI_API_KEY (from platform.moonshot.cn) for --live, or run without --live",
    wrong_turn="the turn ended with {reason}: {error}",
    wrong_hunks="the model proposed {count} changes, expected {expected}",
    wrong_outcome="the decision was answered with {answer}",
    wrong_disk="{file} was changed on disk",
    wrong_exit="the sidecar ended with exit code {code}",
)

CHINESE = Narration(
    stage="示例项目在 {project}",
    recorded="录制的模型在 {url} 通过 HTTP 作答",
    live="由真实服务作答（密钥取自环境变量）",
    connected="{server} {version} 已启动，进程 {pid}，协议 {protocol}，位置编码 {encoding}",
    opened="编辑器打开 src/receipt.js，含未保存的修改（CR LF、中文、🍵）",
    prompt="小票的合计不对：两份龙井只算了一份的钱。请看看 src/receipt.js，帮我修好。",
    review="模型没有改动任何内容。下面是它针对未保存文本的提议，逐处列出：",
    decide="你采纳第 1 处修改，拒绝其余修改。",
    comment="角要保留，不用四舍五入。",
    outcome="已应用：{applied} · 已拒绝：{rejected} · 已在编辑器文本中核对：{verified}",
    changed="未保存的文本，修改前后：",
    untouched="全部 {lines} 个行尾仍是 CR LF；磁盘上的文件原样未动。",
    records="记录都在这里，可随时查看：",
    failed="演示失败：{error}",
    logs="日志和记录：{home}",
    no_key="使用 --live 请先设置 KIMI_API_KEY（在 platform.moonshot.cn 获取），或去掉 --live",
    wrong_turn="本轮以 {reason} 结束：{error}",
    wrong_hunks="模型提议了 {count} 处修改，应为 {expected} 处",
    wrong_outcome="决定的答复是 {answer}",
    wrong_disk="磁盘上的 {file} 被改动了",
    wrong_exit="sidecar 的退出码是 {code}",
)


def narration_for(locale: str) -> Narration:
    """Chinese for `zh…`, English for anything else."""
    return CHINESE if locale.lower().startswith("zh") else ENGLISH
