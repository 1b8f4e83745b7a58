// Questions of the sidecar to the user: permissions, choices of the model, files to open.
import * as vscode from "vscode";
import type { AskParams, PermissionRequestParams, SaveDocumentsParams } from "../../../protocol/kode";
import type { Answers } from "./client/answers";
import { languageAnswers } from "./language";

type Item<T> = vscode.QuickPickItem & { value?: T; show?: () => Promise<void> };

/** One question at a time; what is taken back meanwhile closes, or is never shown. */
let last: Promise<unknown> = Promise.resolve();

export function answers(showText: (title: string, text: string) => Promise<void>): Answers {
  return {
    "kode/permission/request": (params, cancelled) => inTurn(() => askPermission(params, cancelled, showText)),
    "kode/ask": (params, cancelled) => inTurn(() => askChoice(params, cancelled)),
    "kode/openDocument": async ({ uri }) => {
      await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
      return { opened: true };
    },
    "kode/saveDocuments": async ({ documents }) => ({ saved: await save(documents) }),
    ...languageAnswers,
  };
}

/** Save open documents that still have the version that the sidecar knows; the URIs of those it did. */
async function save(wanted: SaveDocumentsParams["documents"]): Promise<string[]> {
  const saved: string[] = [];
  for (const { uri, version } of wanted) {
    const name = vscode.Uri.parse(uri, true).toString();
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === name);
    if (document?.version === version && (await document.save())) saved.push(uri);
  }
  return saved;
}

async function inTurn<T>(ask: () => Promise<T>): Promise<T> {
  const answer = last.then(ask, ask);
  last = answer.catch(() => undefined);
  return answer;
}

async function askPermission({ title, subject, reason, diff, options }: PermissionRequestParams, cancelled: vscode.CancellationToken, showText: (title: string, text: string) => Promise<void>) {
  const items: Item<string>[] = options.map(({ optionId, kind, name }) => ({
    label: `$(${kind === "reject" ? "close" : "check"}) ${name}`,
    description: kind === "allow_session" ? subject : "",
    detail: kind === "allow_once" ? reason : undefined,
    value: optionId,
  }));
  if (diff) items.push({ label: `$(diff) ${vscode.l10n.t("Show what a yes is for")}`, show: () => showText(`${subject}.diff`, diff) });
  const [chosen] = await choose(items, { title: `kode: ${title}`, placeholder: reason ?? subject, many: false }, cancelled);
  const reject = options.find(({ kind }) => kind === "reject")?.optionId ?? "";
  return { optionId: chosen ?? reject };
}

async function askChoice({ question, choices, multi }: AskParams, cancelled: vscode.CancellationToken) {
  const items = choices.map((choice): Item<string> => ({ label: choice, value: choice }));
  return { choices: await choose(items, { title: `kode: ${question}`, placeholder: question, many: multi }, cancelled) };
}

function choose<T>(items: Item<T>[], { title, placeholder, many }: { title: string; placeholder: string; many: boolean }, cancelled: vscode.CancellationToken): Promise<T[]> {
  return new Promise((resolve) => {
    if (cancelled.isCancellationRequested) return resolve([]);
    const pick = vscode.window.createQuickPick<Item<T>>();
    Object.assign(pick, { title, placeholder, items, canSelectMany: many, ignoreFocusOut: true });
    const taken = cancelled.onCancellationRequested(() => pick.hide());
    let result: T[] = [];
    pick.onDidAccept(() => {
      const [item] = pick.selectedItems;
      if (item?.show) return void item.show();
      result = pick.selectedItems.flatMap(({ value }) => (value === undefined ? [] : [value]));
      pick.hide();
    });
    pick.onDidHide(() => {
      taken.dispose();
      pick.dispose();
      resolve(result);
    });
    pick.show();
  });
}
