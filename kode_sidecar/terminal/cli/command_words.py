"""What commands say to a user at a terminal, in two languages."""

from dataclasses import dataclass

from kode_sidecar.terminal.client.labels import system_locale


@dataclass(frozen=True)
class CommandWords:
    """English, unless another language is given. Placeholders are `str.format` fields."""

    no_key: str = "There is no key for a model yet, so first: which host do you use?"
    which_host: str = "Which host do you use?"
    at_home: str = "on this machine, without a key"
    own_address: str = "or type the address of a server of your own, such as {example}"
    provider: str = "number, name or address (Enter is {default}): "
    no_provider: str = "There is no provider {name}: use one of {names}, or an address."
    name_one: str = "Name a provider: {names}, or an address such as {example}."
    console: str = "Keys are made at https://{console}"
    key: str = "key for {host} (what you type is not shown): "
    bad_key: str = "The key {error}."
    empty_key: str = "There is no key: nothing was written."
    answered: str = "{host} answers; it offers {count} models."
    saved: str = "Saved in {path}: {names}"
    saved_provider: str = "{name} is saved in {path}"
    next_step: str = "Now talk to it: kode-sidecar chat"
    given_up: str = "Nothing was set up; `kode-sidecar setup` begins again."


ENGLISH = CommandWords()

CHINESE = CommandWords(
    no_key="还没有模型的密钥，请先设置：您使用哪家服务？",
    which_host="您使用哪家服务？",
    at_home="在本机运行，无需密钥",
    own_address="也可以输入自己的服务器地址，例如 {example}",
    provider="编号、名称或地址（直接回车 = {default}）：",
    no_provider="没有名为 {name} 的服务商：请从 {names} 中选择，或输入地址。",
    name_one="请指定服务商：{names}，或地址，例如 {example}。",
    console="在 https://{console} 创建密钥",
    key="{host} 的密钥（输入时不显示）：",
    bad_key="密钥有误：{error}。",
    empty_key="没有输入密钥，未写入任何内容。",
    answered="{host} 已应答，提供 {count} 个模型。",
    saved="已保存到 {path}：{names}",
    saved_provider="已将 {name} 保存到 {path}",
    next_step="现在可以开始对话：kode-sidecar chat",
    given_up="没有完成设置；可重新运行 `kode-sidecar setup`。",
)


def command_words(locale: str | None = None) -> CommandWords:
    """Return Chinese texts for `zh…`, English ones for others; None is the system's language."""
    return CHINESE if (locale or system_locale()).lower().startswith("zh") else ENGLISH
