// Builds the rooms and connects them. Nothing starts before the user opens a view or runs a command.
import * as vscode from "vscode";
import { Questions } from "./chat/questions";
import { ChatView } from "./chat/view";
import { Keys } from "./client/keys";
import { Sidecar } from "./client/sidecar";
import { registerCommands } from "./commands";
import { tellContext, tellEncodings } from "./context";
import { Decisions } from "./decisions";
import { Demo } from "./demo";
import { answers } from "./prompts";
import { ChangesView } from "./review/changes_view";
import { Findings } from "./review/findings";
import { Marks } from "./review/marks";
import { OwnText } from "./review/own_text";
import { Review } from "./review/review";
import { Texts } from "./review/texts";
import { Sessions } from "./session/sessions";
import { SessionsView } from "./sessions/sessions_view";
import { StatusItem } from "./status";
import { Verbs } from "./verbs";

export function activate(extension: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("kode", { log: true });
  const trace = vscode.window.createOutputChannel("kode trace", { log: true });
  const keys = new Keys(extension.secrets, extension.globalState);
  const questions = new Questions();
  const showText = (title: string, text: string): Promise<void> => texts.show(title, text);
  const sidecar = new Sidecar(extension, keys, answers(questions), log, trace);
  const sessions = new Sessions(sidecar, log);
  const review = new Review(sidecar, sessions);
  const findings = new Findings(sidecar, sessions);
  const texts = new Texts(review);
  const ownText = new OwnText(review);
  const demo = new Demo(sidecar, log);
  const chat = new ChatView(extension, sidecar, sessions, questions, showText);
  const sessionsView = new SessionsView(sidecar, sessions);
  const verbs = new Verbs(sidecar, sessions, chat);
  extension.subscriptions.push(
    ...[log, trace, questions, sessions, review, findings, texts, ownText, demo, sessionsView, new Marks(review, extension.globalState), new ChangesView(review, sessions), new StatusItem(sidecar, sessions, questions)],
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, verbs),
    tellContext(sidecar),
    tellEncodings(sidecar),
    // Trust and settings travel in the handshake alone.
    vscode.workspace.onDidGrantWorkspaceTrust(() => restartWhenIdle(sidecar, sessions)),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("kode") && !change.affectsConfiguration("kode.trace") && restartWhenIdle(sidecar, sessions)),
    ...registerCommands({ extension, sidecar, sessions, chat, review, findings, texts, ownText, sessionsView, keys, demo, verbs, decisions: new Decisions(sidecar, sessions, showText), log }),
    sidecar,
  );
}

/** A turn that runs is not cut off: the new process begins when it is over. */
function restartWhenIdle(sidecar: Sidecar, sessions: Sessions): void {
  if (sidecar.status === "stopped") return;
  const busy = (): boolean => sessions.all().some((session) => session.running);
  if (!busy()) return void sidecar.restart();
  const listener = sessions.onDidChange(() => {
    if (busy()) return;
    listener.dispose();
    void sidecar.restart();
  });
}
