// Questions that wait for the user. They are cards in the chat: nothing here takes the keyboard.
import * as vscode from "vscode";
import type { Question } from "./messages";

type Open = { question: Question; answers: Set<(chosen: readonly string[]) => void> };

export class Questions implements vscode.Disposable {
  private readonly open = new Map<string, Open>();
  private readonly changed = new vscode.EventEmitter<Question | undefined>();
  /** With the question that is new, if one is. */
  readonly onDidChange = this.changed.event;

  all(): Question[] {
    return [...this.open.values()].map(({ question }) => question);
  }

  /** What the user chose; nothing if the question was taken back. One that is asked again is answered once. */
  ask(question: Question, cancelled: vscode.CancellationToken): Promise<readonly string[]> {
    const { requestId } = question;
    return new Promise((resolve) => {
      if (cancelled.isCancellationRequested) return resolve([]);
      const known = this.open.get(requestId);
      const { answers } = known ?? { answers: new Set<typeof resolve>() };
      answers.add(resolve);
      this.open.set(requestId, { question, answers });
      cancelled.onCancellationRequested(() => {
        answers.delete(resolve);
        resolve([]);
        if (!answers.size) this.answer(requestId, []);
      });
      this.changed.fire(known ? undefined : question);
    });
  }

  answer(requestId: string, chosen: readonly string[]): void {
    const known = this.open.get(requestId);
    this.open.delete(requestId);
    known?.answers.forEach((answer) => answer(chosen));
    this.changed.fire(undefined);
  }

  dispose(): void {
    this.changed.dispose();
  }
}

/** What a question is about, in a line. */
export function questionTitle(question: Question): string {
  return "title" in question ? question.title : question.question;
}
