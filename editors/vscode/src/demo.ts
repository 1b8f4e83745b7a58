// A turn without a key: the sidecar's own recorded model answers, in a project of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import { otherArguments } from "./client/program";
import type { Sidecar, Stage } from "./client/sidecar";
import { setContext } from "./context";

export class Demo implements vscode.Disposable {
  private model: ChildProcess | undefined;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** Start the recorded model and the sidecar in front of it; the file that the demo is about. */
  async enter(): Promise<vscode.Uri> {
    await this.leave(false);
    const stage = await this.serve();
    this.sidecar.stage = stage;
    await this.sidecar.restart();
    setContext("demo", true);
    return vscode.Uri.joinPath(stage.root, "src", "receipt.js");
  }

  async leave(restart = true): Promise<void> {
    this.model?.kill();
    this.model = undefined;
    if (!this.sidecar.stage) return;
    this.sidecar.stage = undefined;
    setContext("demo", false);
    if (restart) await this.sidecar.restart();
  }

  private async serve(): Promise<Stage> {
    const program = this.sidecar.program();
    if (!program) throw new Error(vscode.l10n.t("kode-sidecar was not found. Install it on the PATH, or set kode.command."));
    const locale = vscode.env.language.startsWith("zh") ? "zh" : "en";
    const args = otherArguments(program.args, "demo", "--serve-model", "--locale", locale);
    const model = spawn(program.command, args, { cwd: tmpdir(), shell: false, windowsHide: true });
    this.model = model;
    model.stderr?.on("data", (data: Buffer) => this.log.warn(`demo: ${String(data).trimEnd()}`));
    return new Promise((resolve, reject) => {
      const environment: Record<string, string> = {};
      let folder = "";
      model.on("error", reject);
      model.on("exit", () => reject(new Error(vscode.l10n.t("The demo's model did not start. See the log."))));
      createInterface({ input: model.stdout as NodeJS.ReadableStream }).on("line", (line) => {
        const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
        if (name) environment[name] = value ?? "";
        else if (/^# (\/|[A-Za-z]:\\)/.test(line)) folder = line.slice(2);
        if (folder && environment.KIMI_BASE_URL && environment.KODE_HOME) resolve({ environment, root: vscode.Uri.file(folder) });
      });
    });
  }

  dispose(): void {
    this.model?.kill();
  }
}
