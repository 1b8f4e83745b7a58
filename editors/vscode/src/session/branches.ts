// The tree of messages as a chat shows it: one branch, and where it could be another one.
import type { Fold, FoldedMessage } from "../../../../protocol/fold/fold";

/** The messages from the root to the head, oldest first. */
export function branch(fold: Fold): FoldedMessage[] {
  const found: FoldedMessage[] = [];
  let id = fold.headId;
  while (id !== undefined) {
    const message = fold.messages.get(id);
    if (!message) break;
    found.push(message);
    id = message.parentId ?? undefined;
  }
  return found.reverse();
}

/** Messages with the same parent and role, oldest first: the versions of a prompt. */
export function versions(fold: Fold, message: FoldedMessage): FoldedMessage[] {
  const parent = message.parentId ?? undefined;
  return [...fold.messages.values()].filter(
    (other) => (other.parentId ?? undefined) === parent && other.role === message.role && isPrompt(other) === isPrompt(message),
  );
}

/** The newest message below this one, where its branch goes on. */
export function tip(fold: Fold, messageId: string): string {
  const children = new Map<string, string>();
  for (const message of fold.messages.values()) if (message.parentId) children.set(message.parentId, message.id);
  let id = messageId;
  for (let next = children.get(id); next !== undefined; next = children.get(id)) id = next;
  return id;
}

/** Is this something the user said, and no reminder or summary? */
export function isPrompt(message: FoldedMessage): boolean {
  return message.role === "user" && (message.meta.origin === undefined || message.meta.origin === "steer");
}
