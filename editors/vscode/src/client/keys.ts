// The user's keys: in the editor's secret storage, and from there only into the process's environment.
import * as vscode from "vscode";
import type { ProviderAuth } from "../../../../protocol/kode";

/** Where the names of the variables stand that have a key. */
const NAMES = "keys";
/** Those that could have one before their names were stored. */
const FIRST = ["KIMI_API_KEY", "KIMI_INTL_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

export class Keys {
  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly state: vscode.Memento,
  ) {}

  async environment(): Promise<Record<string, string>> {
    const environment: Record<string, string> = {};
    for (const name of this.names()) {
      const key = await this.secrets.get(name);
      if (key) environment[name] = key;
    }
    return environment;
  }

  /** Ask for the key of one of these; true when there is a new one. */
  async ask(providers: readonly ProviderAuth[]): Promise<boolean> {
    const items = providers.flatMap(({ name, ready, variables: [variable] }) => (variable ? [{ label: name, description: variable, detail: ready ? vscode.l10n.t("has a key") : undefined }] : []));
    const provider = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("Whose key is it?"), matchOnDescription: true });
    if (!provider) return false;
    const key = await vscode.window.showInputBox({
      title: provider.label,
      prompt: vscode.l10n.t("Kept in this editor's secret storage and given to the sidecar by its environment."),
      password: true,
      ignoreFocusOut: true,
    });
    if (!key?.trim()) return false;
    await this.secrets.store(provider.description, key.trim());
    await this.state.update(NAMES, [...new Set([...this.names(), provider.description])]);
    return true;
  }

  async forget(): Promise<void> {
    for (const name of this.names()) await this.secrets.delete(name);
  }

  private names(): readonly string[] {
    return this.state.get(NAMES, FIRST);
  }
}
