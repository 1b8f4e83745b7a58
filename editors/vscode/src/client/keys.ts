// The user's keys: in the editor's secret storage, and from there only into the process's environment.
import * as vscode from "vscode";

const PROVIDERS: Record<string, string> = {
  KIMI_API_KEY: "Moonshot Kimi (api.moonshot.cn)",
  KIMI_INTL_API_KEY: "Moonshot Kimi (api.moonshot.ai)",
  ANTHROPIC_API_KEY: "Anthropic",
  OPENAI_API_KEY: "OpenAI",
};

export class Keys {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  async environment(): Promise<Record<string, string>> {
    const environment: Record<string, string> = {};
    for (const name of Object.keys(PROVIDERS)) {
      const key = await this.secrets.get(name);
      if (key) environment[name] = key;
    }
    return environment;
  }

  /** Ask for a key; true when there is a new one. */
  async ask(): Promise<boolean> {
    const items = Object.entries(PROVIDERS).map(([name, label]) => ({ label, description: name }));
    const provider = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("Whose key is it?") });
    if (!provider) return false;
    const key = await vscode.window.showInputBox({
      title: provider.label,
      prompt: vscode.l10n.t("Kept in this editor's secret storage and given to the sidecar by its environment."),
      password: true,
      ignoreFocusOut: true,
    });
    if (!key?.trim()) return false;
    await this.secrets.store(provider.description, key.trim());
    return true;
  }

  async forget(): Promise<void> {
    for (const name of Object.keys(PROVIDERS)) await this.secrets.delete(name);
  }
}
