"""The texts that the demo prints, in English and Chinese side by side."""

from collections.abc import Mapping

# Placeholders are `str.format` fields.
SENTENCES: Mapping[str, tuple[str, str]] = {
    "stage": (
        "The sample project is in {project}",
        "示例项目在 {project}",
    ),
    "recorded": (
        "A recorded model answers over HTTP at {url}",
        "录制的模型在 {url} 通过 HTTP 作答",
    ),
    "live": (
        "The real service answers (the key comes from your environment)",
        "由真实服务作答（密钥取自环境变量）",
    ),
    "connected": (
        "{server} {version} runs as process {pid}, protocol {protocol}, positions {encoding}",
        "{server} {version} 已启动，进程 {pid}，协议 {protocol}，位置编码 {encoding}",
    ),
    "opened": (
        "The editor opens src/receipt.js with unsaved changes (CR LF, 中文, 🍵)",
        "编辑器打开 src/receipt.js，含未保存的修改（CR LF、中文、🍵）",
    ),
    "prompt": (
        "The receipt's total looks wrong: two Longjing cost as much as one. Please look at "
        "src/receipt.js and mend it.",
        "小票的合计不对：两份龙井只算了一份的钱。请看看 src/receipt.js，帮我修好。",
    ),
    "review": (
        "The model changed nothing. Its proposal, hunk by hunk, against the unsaved buffer:",
        "模型没有改动任何内容。下面是它针对未保存文本的提议，逐处列出：",
    ),
    "decide": (
        "You accept hunk 1 and reject the others.",
        "你采纳第 1 处修改，拒绝其余修改。",
    ),
    "comment": (
        "The jiao stay: we do not round.",
        "角要保留，不用四舍五入。",
    ),
    "outcome": (
        "applied: {applied} · rejected: {rejected} · verified in the editor's text: {verified}",
        "已应用：{applied} · 已拒绝：{rejected} · 已在编辑器文本中核对：{verified}",
    ),
    "changed": (
        "The unsaved buffer, before and after:",
        "未保存的文本，修改前后：",
    ),
    "untouched": (
        "All {lines} line ends are still CR LF; the file on disk is as it was.",
        "全部 {lines} 个行尾仍是 CR LF；磁盘上的文件原样未动。",
    ),
    "records": (
        "The records are yours to look at:",
        "记录都在这里，可随时查看：",
    ),
    "failed": (
        "The demo failed: {error}",
        "演示失败：{error}",
    ),
    "logs": (
        "Logs and records: {home}",
        "日志和记录：{home}",
    ),
    "no_key": (
        "set KIMI_API_KEY (from platform.moonshot.cn) for --live, or run without --live",
        "使用 --live 请先设置 KIMI_API_KEY（在 platform.moonshot.cn 获取），或去掉 --live",
    ),
    "wrong_turn": (
        "the turn ended with {reason}: {error}",
        "本轮以 {reason} 结束：{error}",
    ),
    "wrong_hunks": (
        "the model proposed {count} changes, expected {expected}",
        "模型提议了 {count} 处修改，应为 {expected} 处",
    ),
    "wrong_outcome": (
        "the decision was answered with {answer}",
        "决定的答复是 {answer}",
    ),
    "wrong_disk": (
        "{file} was changed on disk",
        "磁盘上的 {file} 被改动了",
    ),
    "wrong_exit": (
        "the sidecar ended with exit code {code}",
        "sidecar 的退出码是 {code}",
    ),
    "job_prompt": (
        "Review src/receipt.js: does the receipt charge what it prints?",
        "审查 src/receipt.js：小票收的钱和印出来的一致吗？",
    ),
    "delivered": (
        "A job runs on a copy of the tea shop, and delivers what it must",
        "任务在茶铺项目的副本上运行，并交付了必需的内容",
    ),
    "undelivered": (
        "The same job, but the step that writes the review is missing",
        "同一个任务，但缺少写出审查结果的那一步",
    ),
    "unsafe": (
        "The same job, but its deliverable lies outside of the sandbox",
        "同一个任务，但交付路径在沙箱之外",
    ),
    "broken": (
        "The same job, but the model's host refuses",
        "同一个任务，但模型服务拒绝作答",
    ),
    "job_outcome": (
        "→ {status}, governance {governance}, exit code {code}",
        "→ {status}，治理结果 {governance}，退出码 {code}",
    ),
    "memory": (
        "A candidate for memory waits for somebody's decision: {content}",
        "一条候选记忆正等待有人决定：{content}",
    ),
    "job_records": (
        "records: {folder}",
        "记录：{folder}",
    ),
    "wrong_run": (
        "the run ended with {found}, which is not what this act is about",
        "运行的结果是 {found}，与这一幕不符",
    ),
}


class Narration:
    """The sentences in one language: Chinese for `zh…`, English for anything else."""

    def __init__(self, locale: str) -> None:
        self.language = "zh" if locale.lower().startswith("zh") else "en"

    def __call__(self, name: str, **values: object) -> str:
        """Return a sentence with its placeholders filled in."""
        english, chinese = SENTENCES[name]
        return (chinese if self.language == "zh" else english).format(**values)
