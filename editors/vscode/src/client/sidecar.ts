// The sidecar process and the connection to it: started, restarted with growing pauses, stopped.
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import * as vscode from "vscode";
import {
  type ApplyWorkspaceEditResult,
  CloseAction,
  ErrorAction,
  type InitializeParams,
  LanguageClient,
  type LanguageClientOptions,
  State,
  type WorkspaceEdit,
} from "vscode-languageclient/node";
import type {
  BlockDelta,
  ChangeSetView,
  EventParams,
  KodeClientNotifications,
  KodeInitializeOptions,
  KodeInitializeResult,
  KodeNotifications,
  KodeRequests,
  KodeServerRequests,
} from "../../../../protocol/kode";
import type { Answers } from "./answers";
import { Backoff } from "./backoff";
import { errorInfo } from "./errors";
import { findProgram, type Found, serveArguments } from "./program";
import { EDITOR_QUERIES } from "../language";

const READY_MS = 30_000;
/** So long an answer may take that nobody waits for; a language server cannot be told to stop. */
const GIVEN_UP_MS = 500;

export type Status = "stopped" | "starting" | "ready" | "waiting" | "missing";

/** Another environment and another folder than the window's, for the demo. */
export type Stage = { environment: Record<string, string>; root: vscode.Uri };

export class Sidecar implements vscode.Disposable {
  status: Status = "stopped";
  /** What to show when the status is not `ready`. */
  problem = "";
  server: KodeInitializeResult | undefined;
  stage: Stage | undefined;
  private client: LanguageClient | undefined;
  private process: ChildProcess | undefined;
  private wanted = false;
  private leaving = new vscode.CancellationTokenSource();
  private readonly asked = new Set<Promise<unknown>>();
  private startedAt = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly backoff = new Backoff();
  private readonly changed = new vscode.EventEmitter<Status>();
  readonly onDidChangeStatus = this.changed.event;
  private readonly told = new vscode.EventEmitter<EventParams>();
  readonly onEvents = this.told.event;
  private readonly moved = new vscode.EventEmitter<ChangeSetView[]>();
  readonly onMoved = this.moved.event;
  private readonly grew = new vscode.EventEmitter<BlockDelta[]>();
  readonly onDeltas = this.grew.event;

  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly keys: { environment(): Promise<Record<string, string>> },
    private readonly answers: Answers,
    private readonly log: vscode.LogOutputChannel,
    private readonly trace: vscode.LogOutputChannel,
  ) {}

  get pid(): number | undefined {
    return this.process?.pid;
  }

  program(): Found | undefined {
    const setting = vscode.workspace.getConfiguration("kode").get<string[]>("command", []);
    return findProgram({
      setting,
      extensionFolder: this.extension.extensionPath,
      path: process.env.PATH,
      windows: process.platform === "win32",
    });
  }

  /** Resolves when the sidecar answers; starts it where it does not run. */
  async ready(): Promise<void> {
    if (this.status === "ready") return;
    if (!this.wanted || this.status === "missing") void this.start();
    const signal = AbortSignal.timeout(READY_MS);
    await new Promise<void>((resolve, reject) => {
      const listener = this.changed.event((status) => {
        if (status === "ready") finish(resolve);
        else if (status === "missing") finish(() => reject(new Error(this.problem)));
      });
      const finish = (how: () => void): void => {
        listener.dispose();
        how();
      };
      signal.addEventListener("abort", () => finish(() => reject(new Error(this.problem || vscode.l10n.t("The sidecar does not answer.")))));
      if (this.status === "ready") finish(resolve);
      else if (this.status === "missing") finish(() => reject(new Error(this.problem)));
    });
  }

  async request<M extends keyof KodeRequests>(method: M, params: KodeRequests[M][0]): Promise<KodeRequests[M][1]> {
    await this.ready();
    return (this.client as LanguageClient).sendRequest<KodeRequests[M][1]>(method, params);
  }

  notify<M extends keyof KodeClientNotifications>(method: M, params: KodeClientNotifications[M][0]): void {
    if (this.status === "ready") void this.client?.sendNotification(method, params);
  }

  async start(): Promise<void> {
    this.wanted = true;
    clearTimeout(this.timer);
    const program = this.program();
    if (!program) {
      this.set("missing", vscode.l10n.t("kode-sidecar was not found. Install it on the PATH, or set kode.command."));
      return;
    }
    this.set("starting");
    this.startedAt = Date.now();
    const client = new StagedClient(this.stage?.root, () => this.spawn(program), await this.options());
    this.client = client;
    client.onNotification("kode/event", (params: KodeNotifications["kode/event"][0]) => this.told.fire(params));
    client.onNotification("kode/changeSet/moved", (params: KodeNotifications["kode/changeSet/moved"][0]) => this.moved.fire(params.changeSets));
    client.onNotification("kode/delta", (params: KodeNotifications["kode/delta"][0]) => this.grew.fire(params.deltas));
    for (const method of Object.keys(this.answers) as (keyof KodeServerRequests)[])
      client.onRequest(method, (params: unknown, cancelled: vscode.CancellationToken): Promise<unknown> => this.answer(method, params, cancelled));
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Stopped && this.client === client) this.died();
    });
    try {
      await client.start();
      if (this.client !== client) return;
      this.server = (client.initializeResult?.capabilities.experimental as { kode?: KodeInitializeResult } | undefined)?.kode;
      this.log.info(`${program.command} (${program.source}), protocol ${this.server?.protocolVersion}, pid ${this.pid}`);
      this.set("ready");
    } catch (error) {
      this.problem = errorInfo(error).message;
      this.log.error(`start: ${this.problem}`);
      if (this.client === client) this.died();
    }
  }

  async stop(): Promise<void> {
    this.wanted = false;
    clearTimeout(this.timer);
    const { client } = this;
    this.client = undefined;
    this.set("stopped");
    this.giveUpQuestions();
    await Promise.race([Promise.allSettled(this.asked), new Promise((resolve) => setTimeout(resolve, GIVEN_UP_MS))]);
    if (client?.state === State.Running) await client.stop(5000).catch((error: unknown) => this.log.warn(`stop: ${String(error)}`));
  }

  /** Nobody waits for the user, or for a language server, any more. */
  private giveUpQuestions(): void {
    this.leaving.cancel();
    this.leaving = new vscode.CancellationTokenSource();
  }

  /** The answer to a question of the sidecar; one that is open when the process is to end is given up. */
  private async answer<M extends keyof KodeServerRequests>(method: M, params: unknown, cancelled: vscode.CancellationToken): Promise<unknown> {
    const either = new vscode.CancellationTokenSource();
    const listeners = [cancelled, this.leaving.token].map((token) => token.onCancellationRequested(() => either.cancel()));
    const given = this.answers[method](params as never, either.token);
    this.asked.add(given);
    try {
      return await given;
    } finally {
      this.asked.delete(given);
      listeners.forEach((listener) => listener.dispose());
    }
  }

  async restart(): Promise<void> {
    await this.stop();
    this.backoff.reset();
    await this.start();
  }

  /** The process ended without being asked to: start it again, later each time. No popup. */
  private died(): void {
    this.client = undefined;
    this.giveUpQuestions();
    if (!this.wanted) return;
    const pause = this.backoff.afterDeath(Date.now() - this.startedAt);
    this.log.warn(`the sidecar ended; next start in ${pause} ms`);
    this.set("waiting", this.problem);
    this.timer = setTimeout(() => void this.start(), pause);
  }

  private async spawn(program: Found): Promise<ChildProcess> {
    const environment = { ...process.env, ...(await this.keys.environment()), ...this.stage?.environment };
    // Not the project: nothing there may be taken for a part of the program.
    this.process = spawn(program.command, serveArguments(program.args), { env: environment, cwd: tmpdir(), shell: false, windowsHide: true });
    return this.process;
  }

  private async options(): Promise<LanguageClientOptions> {
    return {
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.log,
      traceOutputChannel: this.trace,
      initializationOptions: { kode: handshake(this.extension) },
      initializationFailedHandler: () => false,
      middleware: { workspace: { handleApplyEdit: (params, next) => refusal(params.edit) ?? next(params, this.leaving.token) } },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
    };
  }

  private set(status: Status, problem = ""): void {
    this.status = status;
    this.problem = problem;
    this.changed.fire(status);
  }

  dispose(): void {
    void this.stop();
  }
}

/** Why an edit is not applied: an editor that has no text document neither shows nor saves it. */
function refusal(edit: WorkspaceEdit): ApplyWorkspaceEditResult | undefined {
  const uris = (edit.documentChanges ?? []).flatMap((one) => ("textDocument" in one ? [one.textDocument.uri] : [])).concat(Object.keys(edit.changes ?? {}));
  const texts = new Set(vscode.workspace.textDocuments.map(({ uri }) => uri.toString()));
  const inputs = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ input }) => input));
  const shown = new Set(inputs.flatMap((input) => (input instanceof vscode.TabInputCustom ? [input.uri.toString()] : [])));
  const uri = uris.map((one) => vscode.Uri.parse(one, true)).find((one) => shown.has(one.toString()) && !texts.has(one.toString()));
  if (!uri) return undefined;
  const name = vscode.workspace.asRelativePath(uri);
  return { applied: false, failureReason: vscode.l10n.t("{0} is open in an editor of its own that holds no text; reopen it as text, then accept again", name) };
}

/** Opens the stage's folder where there is a stage, else the window's folders. */
class StagedClient extends LanguageClient {
  constructor(
    private readonly root: vscode.Uri | undefined,
    server: () => Promise<ChildProcess>,
    options: LanguageClientOptions,
  ) {
    super("kode", "kode", server, options);
  }

  protected override fillInitializeParams(params: InitializeParams): void {
    super.fillInitializeParams(params);
    if (!this.root) return;
    params.rootUri = this.root.toString();
    params.workspaceFolders = [{ uri: params.rootUri, name: "demo" }];
  }
}

function handshake(extension: vscode.ExtensionContext): KodeInitializeOptions {
  const configuration = vscode.workspace.getConfiguration("kode");
  const setting = (name: string): string | undefined => configuration.get<string>(name) || undefined;
  return {
    protocolVersions: ["1.0"],
    client: { name: "kode for VS Code", version: (extension.extension.packageJSON as { version: string }).version },
    locale: vscode.env.language,
    trusted: vscode.workspace.isTrusted,
    settings: {
      mode: setting("mode") as never,
      model: setting("model"),
      agent: setting("agent"),
      fileEncoding: setting("fileEncoding"),
    },
    capabilities: { permission: {}, ask: {}, openDocument: {}, saveDocuments: {}, movedHunks: {}, changeSetReview: {}, editor: EDITOR_QUERIES },
  };
}
