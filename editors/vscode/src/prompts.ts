// What the sidecar asks of the editor: questions for the user, files to open, documents to save.
import * as vscode from "vscode";
import type { SaveDocumentsParams } from "../../../protocol/kode";
import type { Questions } from "./chat/questions";
import type { Answers } from "./client/answers";
import { languageAnswers } from "./language";

export function answers(questions: Questions): Answers {
  return {
    "kode/permission/request": async (params, cancelled) => {
      const [chosen] = await questions.ask(params, cancelled);
      return { optionId: chosen ?? params.options.find(({ kind }) => kind === "reject")?.optionId ?? "" };
    },
    "kode/ask": async (params, cancelled) => ({ choices: [...(await questions.ask(params, cancelled))] }),
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
    const notebook = vscode.workspace.notebookDocuments.find((one) => one.uri.toString() === name);
    if (notebook ? await notebook.save() : document?.version === version && (await document.save())) saved.push(uri);
  }
  return saved;
}
