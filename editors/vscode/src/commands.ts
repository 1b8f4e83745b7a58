// Every command, by name. What it does is told by the room it belongs to.
import * as vscode from "vscode";
import type { ContextEditResult, Mode, SessionView } from "../../../protocol/kode";
import * as attachments from "./chat/attachments";
import type { ChatView } from "./chat/view";
import { errorInfo } from "./client/errors";
import type { Sidecar } from "./client/sidecar";
import type { Keys } from "./client/keys";
import { debugInformation } from "./debug_information";
import type { Decisions } from "./decisions";
import type { Demo } from "./demo";
import type { Node } from "./review/changes_view";
import { findingCommands } from "./review/finding_commands";
import type { Findings } from "./review/findings";
import { isPending } from "./review/hunks";
import type { OwnText } from "./review/own_text";
import type { Review } from "./review/review";
import type { Texts } from "./review/texts";
import type { FoldedHunk } from "../../../protocol/fold/fold";
import type { SessionsView } from "./sessions/sessions_view";
import { showServers } from "./servers";
import { parseBudget, shownBudget } from "./session/budget";
import { changes, edit, parts, shownPart } from "./session/context_parts";
import type { Sessions } from "./session/sessions";
import type { Verbs } from "./verbs";

export type Rooms = {
  extension: vscode.ExtensionContext;
  sidecar: Sidecar;
  sessions: Sessions;
  chat: ChatView;
  review: Review;
  findings: Findings;
  texts: Texts;
  ownText: OwnText;
  sessionsView: SessionsView;
  keys: Keys;
  demo: Demo;
  verbs: Verbs;
  decisions: Decisions;
  log: vscode.LogOutputChannel;
};

/** What a command on a hunk is called with: by a lens, the changes view, the peek of the gutter, or a key. */
type HunkArgument = string | Node | vscode.Uri | undefined;
/** A change of the peek, as the editor describes it. */
type Change = { modifiedStartLineNumber: number };

export function registerCommands(rooms: Rooms): vscode.Disposable[] {
  const commands = { ...chatCommands(rooms), ...reviewCommands(rooms), ...findingCommands(rooms), ...sessionCommands(rooms), ...programCommands(rooms) };
  return Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`kode.${name}`, async (...args: never[]) => {
      rooms.log.debug(name);
      try {
        await run(...args);
      } catch (error) {
        rooms.log.warn(`${name}: ${errorInfo(error).message}`);
        void vscode.window.showErrorMessage(errorInfo(error).message);
      }
    }),
  );
}

type Commands = Record<string, (...args: never[]) => unknown>;

function tellSize({ tokensBefore, tokensAfter, rereadTokens }: ContextEditResult): void {
  const text = vscode.l10n.t("The next request has {0} tokens instead of {1}; {2} are read anew.", tokensAfter, tokensBefore, rereadTokens);
  void vscode.window.showInformationMessage(text);
}

function chatCommands({ chat, sessions, sidecar, verbs, decisions }: Rooms): Commands {
  const editor = (): vscode.TextEditor | undefined => vscode.window.activeTextEditor;
  const addSelection = async (): Promise<void> => {
    const at = editor();
    if (at) await chat.attach(at.selection.isEmpty ? attachments.file(at.document.uri) : attachments.selection(at));
  };
  return {
    chat: () => chat.focus(),
    answerQuestion: () => chat.focus(true),
    newSession: async () => {
      sessions.showNew();
      await chat.focus();
    },
    askAboutSelection: addSelection,
    addSelection,
    addFile: (uri?: vscode.Uri) => {
      const file = uri ?? editor()?.document.uri;
      return file && chat.attach(attachments.file(file));
    },
    verb: (name?: string, words?: string) => verbs.run(name, words),
    explain: () => verbs.run("explain", ""),
    fix: () => verbs.run("fix", ""),
    tests: () => verbs.run("tests", ""),
    refactor: () => verbs.run("refactor", ""),
    addProblems: () => {
      const at = editor();
      return at && chat.attach(attachments.problems(at.document.uri));
    },
    stop: () => sessions.cancel(),
    pickMode: async () => {
      const names: [Mode, string][] = [
        ["review", vscode.l10n.t("Edits wait for your decision")],
        ["ask", vscode.l10n.t("The turn waits until you have decided about an edit")],
        ["keep", vscode.l10n.t("Edits are applied and saved at once; you keep or undo them afterwards")],
        ["auto", vscode.l10n.t("Edits are applied at once and can be taken back")],
        ["plan", vscode.l10n.t("No edits: read and plan")],
      ];
      const items = names.map(([mode, detail]) => ({ label: mode, detail, mode }));
      const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("What becomes of proposed edits") });
      if (chosen) await sessions.update({ mode: chosen.mode });
    },
    pickModel: async () => {
      const { logical, providers, default: standard } = await sidecar.request("kode/models/list", {});
      const items: vscode.QuickPickItem[] = [
        ...logical.map(({ name, candidates }) => ({ label: name, description: name === standard ? vscode.l10n.t("default") : "", detail: candidates.map((candidate) => candidate.name).join(" → ") })),
        ...providers.flatMap(({ name, models, error }) => [
          { label: name, kind: vscode.QuickPickItemKind.Separator },
          ...(error ? [{ label: `$(warning) ${name}`, detail: error.message }] : []),
          ...models.filter((model) => !model.retired).map((model) => ({
            label: model.name,
            description: [
              model.contextWindow ? vscode.l10n.t("{0}k tokens", Math.round(model.contextWindow / 1000)) : "",
              model.price ? `${model.price.currency} ${model.price.input}/${model.price.output}` : "",
              model.images ? vscode.l10n.t("sees pictures") : "",
            ].filter(Boolean).join(" · "),
          })),
        ]),
      ];
      const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("Model"), matchOnDetail: true });
      if (chosen && !chosen.label.startsWith("$(")) await sessions.update({ model: chosen.label });
    },
    pickBudget: async () => {
      const said = await vscode.window.showInputBox({
        title: vscode.l10n.t("What this session may cost"),
        prompt: vscode.l10n.t("An amount and a currency, such as 5 CNY. No request passes it; empty: no limit."),
        value: shownBudget(sessions.allowed()),
        validateInput: (text) => (!text.trim() || parseBudget(text) ? undefined : vscode.l10n.t("Such as 5 CNY")),
      });
      if (said !== undefined) sessions.allow(parseBudget(said));
    },
    editContext: async () => {
      const { shown } = sessions;
      if (!shown) return;
      const inspected = await sidecar.request("kode/context/inspect", { sessionId: shown.id });
      const items = parts(inspected).map((part) => ({
        label: shownPart(part),
        description: `${part.origin} · ${vscode.l10n.t("{0} tokens", part.tokens)}`,
        part,
      }));
      const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("What the model is told next"), matchOnDescription: true });
      if (!chosen) return;
      const names = { leaveOut: vscode.l10n.t("Leave it out"), pin: vscode.l10n.t("Pin it: nothing takes its place"), restore: vscode.l10n.t("As if nothing had been decided") };
      const choices = changes(chosen.part).map((verb) => ({ label: names[verb], verb }));
      const choice = await vscode.window.showQuickPick(choices, { title: chosen.label });
      if (choice) tellSize(await sidecar.request("kode/context/edit", edit(shown.id, choice.verb, chosen.part)));
    },
    undoCompaction: async () => {
      const { shown } = sessions;
      if (shown) tellSize(await sidecar.request("kode/context/undoCompaction", { sessionId: shown.id }));
    },
    pickEffort: () => decisions.effort(),
    memories: () => decisions.memories(),
    permissions: () => decisions.permissions(),
    usage: () => decisions.usage(),
    mcpServers: () => showServers(sidecar),
    compact: async () => {
      const { shown } = sessions;
      if (!shown) return;
      const title = vscode.l10n.t("Summing up the conversation …");
      const work = (): Promise<unknown> => sidecar.request("kode/context/compact", { sessionId: shown.id });
      await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, work);
    },
  };
}

function reviewCommands({ extension, review, texts, ownText }: Rooms): Commands {
  const hunkOf = (argument: HunkArgument, changes: readonly Change[] = [], index = 0): FoldedHunk | undefined => {
    if (typeof argument === "string") return review.find(argument);
    if (argument && "kind" in argument) return argument.kind === "hunk" ? argument.hunk : undefined;
    if (argument) return review.near(argument, (changes[index]?.modifiedStartLineNumber ?? 1) - 1);
    void extension.globalState.update("keysKnown", true);
    return review.atCursor();
  };
  /** The same for the hunk that a command is called with, if there is one. */
  const onHunk = (run: (hunk: FoldedHunk) => unknown) => (...called: Parameters<typeof hunkOf>): unknown => {
    const hunk = hunkOf(...called);
    return hunk && run(hunk);
  };
  return {
    review: () => texts.compareAll(),
    nextHunk: () => review.go(false),
    previousHunk: () => review.go(true),
    revealHunk: (hunkId: string) => {
      const hunk = review.find(hunkId);
      return hunk && review.reveal(hunk);
    },
    acceptHunk: onHunk((hunk) => review.decide(hunk, { action: "accept" })),
    rejectHunk: onHunk((hunk) => review.decide(hunk, { action: "reject" })),
    rejectHunkWithComment: onHunk(async (hunk) => {
      const prompt = vscode.l10n.t("Why not? The model is told.");
      const comment = await vscode.window.showInputBox({ prompt, title: hunk.path, ignoreFocusOut: true });
      if (comment !== undefined) await review.decide(hunk, { action: "reject", comment: comment || undefined });
    }),
    editHunk: onHunk((hunk) => isPending(hunk) && ownText.edit(hunk)),
    takeOwnText: () => ownText.take(),
    dropOwnText: () => ownText.drop(),
    acceptAll: () => review.decideAll("accept"),
    rejectAll: () => review.decideAll("reject"),
    openDiff: (argument: string | vscode.Uri | Node | undefined) => {
      const named = typeof argument === "string" ? (review.find(argument)?.uri ?? argument) : undefined;
      if (named) return texts.compare(vscode.Uri.parse(named, true));
      if (argument && typeof argument === "object" && "kind" in argument) return argument.kind === "file" ? texts.compare(vscode.Uri.parse(argument.uri, true)) : undefined;
      const uri = vscode.window.activeTextEditor?.document.uri;
      return uri && texts.compare(uri);
    },
    undoHunk: onHunk(({ hunkId }) => review.undo({ hunkId })),
    undoTurn: () => {
      const turnId = review.lastTurn();
      if (turnId) return review.undo({ turnId });
      return vscode.window.setStatusBarMessage(vscode.l10n.t("There is nothing to take back."), 3000);
    },
    undoChanges: (node: Node | undefined) => (node?.kind === "changeSet" ? review.undo({ changeSetId: node.set.id }) : undefined),
  };
}

function sessionCommands({ chat, sessions, sidecar, sessionsView }: Rooms): Commands {
  const idOf = (argument: SessionView | string | undefined): string | undefined => (typeof argument === "string" ? argument : (argument?.sessionId ?? sessions.shown?.id));
  return {
    openSession: async (sessionId: string) => {
      await sessions.show(sessionId);
      await chat.focus();
    },
    searchSessions: () => sessionsView.search(),
    refreshSessions: () => sessionsView.refresh(),
    forkSession: async (argument: SessionView | string | undefined) => {
      const sessionId = idOf(argument);
      if (sessionId) await sessions.fork(sessionId);
    },
    renameSession: async ({ sessionId, title: value }: SessionView) => {
      const title = await vscode.window.showInputBox({ title: vscode.l10n.t("Name of the session"), value });
      if (title === undefined) return;
      await sidecar.request("kode/session/update", { sessionId, title: title || null });
      await sessionsView.refresh();
    },
    deleteSession: async ({ sessionId, title }: SessionView) => {
      const yes = vscode.l10n.t("Delete");
      const options = { modal: true, detail: vscode.l10n.t("All that it left on disk is removed.") };
      if ((await vscode.window.showWarningMessage(vscode.l10n.t("Delete the session “{0}”?", title), options, yes)) !== yes) return;
      await sidecar.request("kode/session/delete", { sessionId });
      sessions.forget(sessionId);
      await sessionsView.refresh();
    },
    exportSession: async ({ sessionId, title }: SessionView) => {
      const formats = [{ label: vscode.l10n.t("Markdown, the current branch"), format: "md" as const }, { label: vscode.l10n.t("JSON lines, all messages"), format: "jsonl" as const }];
      const chosen = await vscode.window.showQuickPick(formats, { title });
      if (!chosen) return;
      const { fileName, text } = await sidecar.request("kode/session/export", { sessionId, format: chosen.format });
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      const target = await vscode.window.showSaveDialog({ defaultUri: folder && vscode.Uri.joinPath(folder, fileName) });
      if (target) await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(text));
    },
  };
}

function programCommands(rooms: Rooms): Commands {
  const { sidecar, sessions, chat, keys, demo, log } = rooms;
  return {
    setKey: async () => {
      await demo.leave();
      const { providers } = await sidecar.request("kode/auth/status", {});
      if (await keys.ask(providers)) await sidecar.restart();
    },
    forgetKeys: async () => {
      await keys.forget();
      await sidecar.restart();
    },
    demo: async () => {
      const file = await demo.enter();
      sessions.showNew();
      await vscode.window.showTextDocument(file, { preview: false });
      await chat.focus();
      await sessions.send(vscode.l10n.t("The total of the receipt is wrong. Please mend it."));
    },
    leaveDemo: async () => {
      sessions.showNew();
      await demo.leave();
    },
    restart: () => sidecar.restart(),
    showLog: () => log.show(),
    showKeys: () => vscode.commands.executeCommand("workbench.action.openGlobalKeybindings", "kode."),
    openSettings: () => vscode.commands.executeCommand("workbench.action.openSettings", "kode."),
    walkthrough: () => vscode.commands.executeCommand("workbench.action.openWalkthrough", `${rooms.extension.extension.id}#kode.start`, false),
    copyDebugInformation: async () => {
      const text = await debugInformation(rooms);
      log.info(text);
      await vscode.env.clipboard.writeText(text);
      vscode.window.setStatusBarMessage(vscode.l10n.t("Debug information was copied. There is no key in it."), 5000);
    },
  };
}
