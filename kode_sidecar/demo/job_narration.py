"""What the demo of governed runs says between its acts, in two languages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class JobNarration:
    """Placeholders are `str.format` fields."""

    prompt: str
    delivered: str
    undelivered: str
    unsafe: str
    broken: str
    outcome: str
    memory: str
    records: str
    wrong: str
    failed: str
    no_key: str


ENGLISH = JobNarration(
    prompt="Review src/receipt.js: does the receipt charge what it prints?",
    delivered="A job runs on a copy of the tea shop, and delivers what it must",
    undelivered="The same job, but the step that writes the review is missing",
    unsafe="The same job, but its deliverable lies outside of the sandbox",
    broken="The same job, but the model's host refuses",
    outcome="→ {status}, governance {governance}, exit code {code}",
    memory="A candidate for memory waits for somebody's decision: {content}",
    records="records: {folder}",
    wrong="the run ended with {found}, which is not what this act is about",
    failed="The demo failed: {error}",
    no_key="set KIMI_API_KEY (from platform.moonshot.cn) for --live, or run without --live",
)
CHINESE = JobNarration(
    prompt="审查 src/receipt.js：小票收的钱和印出来的一致吗？",
    delivered="任务在茶铺项目的副本上运行，并交付了必需的内容",
    undelivered="同一个任务，但缺少写出审查结果的那一步",
    unsafe="同一个任务，但交付路径在沙箱之外",
    broken="同一个任务，但模型服务拒绝作答",
    outcome="→ {status}，治理结果 {governance}，退出码 {code}",
    memory="一条候选记忆正等待有人决定：{content}",
    records="记录：{folder}",
    wrong="运行的结果是 {found}，与这一幕不符",
    failed="演示失败：{error}",
    no_key="使用 --live 请先设置 KIMI_API_KEY（在 platform.moonshot.cn 获取），或去掉 --live",
)


def job_narration_for(locale: str) -> JobNarration:
    """Chinese for `zh…`, English for anything else."""
    return CHINESE if locale.lower().startswith("zh") else ENGLISH
