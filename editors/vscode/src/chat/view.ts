// The chat's webview: passes the stream on in batches, and carries out what the user does there.
import { randomBytes } from "node:crypto";
import { isAbsolute } from "node:path";
import * as vscode from "vscode";
import type { BlockDelta, Event } from "../../../../protocol/kode";
import { errorInfo } from "../client/errors";
import type { Sidecar } from "../client/sidecar";
import { setContext } from "../context";
import { isToKeep, waits } from "../review/hunks";
import type { Sessions } from "../session/sessions";
import { meter, meterTitle } from "../status";
import * as attachments from "./attachments";
import type { Attachment, ChatState, FromView, Question, ToView } from "./messages";
import { type Questions, questionTitle } from "./questions";

const BATCH_MS = 16;
const LAST_SESSION = "session";

export class ChatView implements vscode.WebviewViewProvider {
  private view: vscode.WebviewView | undefined;
  private ready = false;
  /** For a view that is not there yet. */
  private early: ToView[] = [];
  private items: (Event | BlockDelta)[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly questions: Questions,
    private readonly openText: (title: string, text: string) => Promise<void>,
  ) {
    extension.subscriptions.push(
      vscode.window.registerWebviewViewProvider("kode.chat", this, { webviewOptions: { retainContextWhenHidden: true } }),
      sidecar.onDeltas((deltas) => this.stream(deltas)),
      sessions.onEvents((events) => this.stream(events)),
      sessions.onSnapshot((told) => this.post({ type: "snapshot", told })),
      sessions.onPage((messages) => this.post({ type: "page", messages: [...messages] })),
      sessions.onReturned(({ text, attachments: returned }) => this.post({ type: "giveBack", text, attachments: returned })),
      sessions.onFinished(({ error }) => this.signal(error ? vscode.l10n.t("kode has failed: {0}", error.message) : vscode.l10n.t("kode is done."), false)),
      questions.onDidChange((asked) => this.showQuestions(asked)),
      sessions.onDidChange((what) => {
        if (what === "shown" && !sidecar.stage) void extension.workspaceState.update(LAST_SESSION, sessions.shown?.id);
        this.postState();
      }),
    );
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    const { webview } = view;
    const dist = vscode.Uri.joinPath(this.extension.extensionUri, "dist", "webview");
    webview.options = { enableScripts: true, localResourceRoots: [dist] };
    webview.onDidReceiveMessage((message: FromView) => void this.heard(message));
    view.onDidDispose(() => {
      this.view = undefined;
      this.ready = false;
    });
    const nonce = randomBytes(16).toString("hex");
    const script = webview.asWebviewUri(vscode.Uri.joinPath(dist, "main.js"));
    const style = webview.asWebviewUri(vscode.Uri.joinPath(dist, "style.css"));
    const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}; img-src data:`;
    webview.html = `<!DOCTYPE html>
<html lang="${vscode.env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>kode</title>
</head>
<body><script nonce="${nonce}" src="${script}"></script></body>
</html>`;
  }

  /** Move the keyboard into the chat: to the prompt, or to the question that waits. */
  async focus(question = false): Promise<void> {
    await vscode.commands.executeCommand("kode.chat.focus");
    this.post({ type: "focus", question });
  }

  /** In the chat, by a badge, and by a notification where the chat is out of sight. */
  private showQuestions(asked: Question | undefined): void {
    const questions = this.questions.all();
    this.post({ type: "questions", questions });
    // A view of the web kind ignores `undefined`; zero shows nothing.
    if (this.view) this.view.badge = { value: questions.length, tooltip: vscode.l10n.t("{0} questions wait for you", questions.length) };
    setContext("asks", questions.length > 0);
    if (asked) this.signal(vscode.l10n.t("kode asks: {0}", questionTitle(asked)), true);
  }

  /** A notification of what the user would miss, for the chat is out of sight. */
  private signal(text: string, question: boolean): void {
    if (this.view?.visible && vscode.window.state.focused) return;
    const show = vscode.l10n.t("Show");
    void vscode.window.showInformationMessage(text, show).then((chosen) => void (chosen && this.focus(question)));
  }

  async attach(attachment: Attachment | undefined): Promise<void> {
    if (!attachment) return;
    await this.focus();
    this.post({ type: "attach", attachment });
  }

  private async heard(message: FromView): Promise<void> {
    try {
      await this.carryOut(message);
    } catch (error) {
      void vscode.window.showErrorMessage(errorInfo(error).message);
    }
  }

  private async carryOut(message: FromView): Promise<void> {
    switch (message.type) {
      case "ready":
        return this.begin();
      case "send":
        if (message.steer) return this.sessions.steer(message.text, message.attachments);
        return this.sessions.send(message.text, message.attachments, message.parentId);
      case "answer":
        this.questions.answer(message.requestId, message.chosen);
        return message.words ? this.sessions.steer(message.words) : undefined;
      case "cancel":
        return this.sessions.cancel();
      case "unqueue":
        return this.sessions.unqueue(message.index);
      case "fork":
        return this.sessions.shown && this.sessions.fork(this.sessions.shown.id, message.messageId);
      case "setHead":
        return this.sessions.setHead(message.messageId);
      case "open":
        return this.open(message.uri, message.line);
      case "openPlace":
        return this.openPlace(message.path, message.line);
      case "insert":
        return insert(message.text);
      case "blob":
        return this.openText(message.title, await this.blob(message.ref));
      case "link":
        if (/^(https?|mailto):/.test(message.href)) await vscode.env.openExternal(vscode.Uri.parse(message.href));
        return;
      case "pickAttachment":
        for (const chosen of await attachments.pick(this.sidecar)) await this.attach(chosen);
        return;
      case "command":
        // Only our own: the view shows what a model has said.
        if (message.command.startsWith("kode.")) await vscode.commands.executeCommand(message.command, message.argument);
    }
  }

  private begin(): void {
    this.ready = true;
    this.post({ type: "start", strings: strings(), language: vscode.env.language });
    for (const message of this.early.splice(0)) this.post(message);
    this.postState();
    this.showQuestions(undefined);
    const last = this.sessions.shown?.id ?? this.extension.workspaceState.get<string>(LAST_SESSION);
    if (last) void this.sessions.show(last);
    this.sidecar.ready().catch(() => undefined); // the state tells what is wrong
  }

  private stream(items: readonly (Event | BlockDelta)[]): void {
    this.items.push(...items);
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const items = this.items.splice(0);
    // A view that comes later gets a snapshot instead.
    if (items.length && this.ready) void this.view?.webview.postMessage({ type: "stream", items } satisfies ToView);
  }

  private post(message: ToView): void {
    this.flush();
    if (this.ready) void this.view?.webview.postMessage(message);
    else if (["attach", "giveBack", "focus"].includes(message.type)) this.early.push(message);
  }

  postState(): void {
    const { shown } = this.sessions;
    const hunks = this.sessions.all().flatMap((session) => [...session.fold.hunks.values()].filter(waits));
    const failure = shown?.failure ?? this.sessions.failure;
    const state: ChatState = {
      status: this.sidecar.status,
      problem: this.sidecar.problem,
      sessionId: shown?.id,
      running: shown?.running ?? false,
      readOnly: shown?.readOnly ?? false,
      demo: this.sidecar.stage !== undefined,
      mode: shown?.fold.mode || this.sessions.wish.mode || "",
      model: shown?.fold.model || this.sessions.wish.model || "",
      meter: shown ? meter(shown) : "",
      meterTitle: shown ? meterTitle(shown) : "",
      queue: shown?.queue.map(({ text }) => text) ?? [],
      failure: failure && { message: failure.message, code: failure.code },
      waiting: { hunks: hunks.length, files: new Set(hunks.map((hunk) => hunk.uri)).size, applied: hunks.every(isToKeep) },
    };
    this.post({ type: "state", state });
  }

  private async open(uri: string, line?: number): Promise<void> {
    const selection = line === undefined ? undefined : new vscode.Range(line - 1, 0, line - 1, 0);
    await vscode.window.showTextDocument(vscode.Uri.parse(uri, true), { selection });
  }

  /** A path as an answer has it: below an open folder, or the end of one. */
  private async openPlace(path: string, line: number): Promise<void> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const named = isAbsolute(path) ? [vscode.Uri.file(path)] : folders.map(({ uri }) => vscode.Uri.joinPath(uri, path));
    const there = await Promise.all(named.map((uri) => vscode.workspace.fs.stat(uri).then(() => uri, () => undefined)));
    const found = there.find(Boolean) ?? (await vscode.workspace.findFiles(`**/${path.replaceAll("\\", "/").replace(/^(\.?\/)+/, "")}`, undefined, 1))[0];
    if (found) await this.open(found.toString(), line);
    else vscode.window.setStatusBarMessage(vscode.l10n.t("There is no {0} in the open folders.", path), 5000);
  }

  private async blob(ref: string): Promise<string> {
    const pages: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const page: { text: string; nextOffset?: number } = await this.sidecar.request("kode/blob/read", { ref, offset });
      pages.push(page.text);
      offset = page.nextOffset;
    }
    return pages.join("");
  }
}

/** Put text where the cursor is. */
async function insert(text: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return void vscode.window.setStatusBarMessage(vscode.l10n.t("Open a file first: the text goes to its cursor."), 5000);
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
  await editor.edit((edit) => editor.selections.forEach((selection) => edit.replace(selection, text)));
}

/** The translations that were loaded for this language. */
function strings(): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [key, value] of Object.entries(vscode.l10n.bundle ?? {})) found[key] = typeof value === "string" ? value : String((value as { message?: string }).message ?? key);
  return found;
}
