// What the model is told next, as a list to choose from. No VS Code in here.
import type { ContextEditParams, ContextInspectResult, Segment } from "../../../../protocol/kode";

export type Verb = "leaveOut" | "pin" | "restore";
export type Part = Segment & { messageId: string; isOut: boolean };

/** The parts that are messages, what is left out last. */
export function parts({ segments, leftOut = [] }: ContextInspectResult): Part[] {
  const told = [...segments.map((one) => ({ ...one, isOut: false })), ...leftOut.map((one) => ({ ...one, isOut: true }))];
  return told.filter((one): one is Part => Boolean(one.messageId));
}

/** What can be done about one. */
export function changes({ isOut, pinned }: Part): Verb[] {
  if (isOut) return ["restore"];
  return pinned ? ["leaveOut", "restore"] : ["leaveOut", "pin"];
}

/** The icon and the text of one, in a line. */
export function shownPart({ isOut, pinned, head }: Part): string {
  return `$(${isOut ? "circle-slash" : pinned ? "pinned" : "comment"}) ${head.replace(/\s+/g, " ").slice(0, 80)}`;
}

/** The request that does it. */
export function edit(sessionId: string, verb: Verb, { messageId }: Part): ContextEditParams {
  return { sessionId, [verb]: [messageId] };
}
