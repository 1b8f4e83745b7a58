// A plugin's code against the declarations: what must compile, and what must not.
import type {
  Block,
  Event,
  HunkState,
  KodeErrors,
  KodeInitializeOptions,
  KodeInitializeResult,
  KodeNotifications,
  KodeRequests,
  KodeServerRequests,
  Mode,
  Unknown,
} from "../../../protocol/kode.js";

declare function request<M extends keyof KodeRequests>(
  method: M,
  params: KodeRequests[M][0],
): Promise<KodeRequests[M][1]>;
declare function onNotification<M extends keyof KodeNotifications>(
  method: M,
  handler: (params: KodeNotifications[M][0]) => void,
): void;
declare function onRequest<M extends keyof KodeServerRequests>(
  method: M,
  handler: (params: KodeServerRequests[M][0]) => KodeServerRequests[M][1],
): void;

export const hello: KodeInitializeOptions = {
  protocolVersions: ["1.0"],
  client: { name: "typed", version: "1" },
  settings: { mode: "review" },
  capabilities: { permission: {}, changeSetReview: { hunk: {} } },
};

export async function converse(kode: KodeInitializeResult): Promise<string> {
  const session = await request("kode/session/new", { title: `with ${kode.server.name}` });
  const next: number = session.seq + 1;
  const turn = await request("kode/turn/start", {
    sessionId: session.sessionId,
    input: [{ type: "text", text: `after ${next}` }],
    parentId: null,
  });
  const decided = await request("kode/changeSet/decide", {
    changeSetId: "c1",
    decisions: [{ hunkId: "h1", action: "replace", newText: "x" }],
    rest: "keep",
  });
  const verified: boolean | null = decided.verified;
  const undone = await request("kode/changeSet/undo", { turnId: turn.turnId, dryRun: true });
  const diffs: string[] = undone.conflicts.map((conflict) => conflict.diff);
  const { changeSets } = await request("kode/changeSet/list", { sessionId: session.sessionId });
  const open = changeSets.filter((one) => one.onHead && one.state !== "decided");
  const started = await request("kode/run/start", { config: "/review.yaml", prompt: "Review." });
  const { run, events } = await request("kode/run/get", { runId: started.runId, afterSequence: 0 });
  const { cancelled }: { cancelled: boolean } = await request("kode/run/cancel", { runId: run.runId });
  const judged: string = run.governance ?? `${run.status} in ${run.step}`;
  const told: string[] = (events ?? []).map((one) => one.summary);
  return `${judged} ${cancelled} ${told.length} ${turn.turnId} ${decided.applied.length} ${verified} ${diffs.length} ${open.length}`;
}

// Tagged unions narrow, and every member can be named.
export function words(event: Event): string {
  switch (event.type) {
    case "turn.started":
    case "turn.steered":
    case "message.completed":
    case "block.dropped":
    case "permission.requested":
    case "permission.resolved":
    case "ask.requested":
    case "ask.resolved":
    case "session.updated":
    case "usage.updated":
      return event.type;
    case "turn.completed":
      return event.error === undefined ? event.stopReason : event.error.message;
    case "message.added":
      return event.role;
    case "block.started":
    case "block.completed":
      return blockWords(event.block);
    case "tool.progress":
      return event.message ?? event.toolUseId;
    case "model.waiting":
      return event.state === "silent" ? event.message : `${event.retryInMs} ms`;
    case "scout.updated":
      return `${event.title} ${event.state} ${event.toolCalls} ${event.toolUseId}`;
    case "changeSet.updated":
      return event.files.flatMap((file) => file.hunks.map((hunk) => hunk.state)).join();
    case "changeSet.forming":
      return event.hunks.map((hunk) => `${event.path}:${hunk.range.start.line} ${hunk.newText}`).join();
    case "freshness.changed":
      return event.files.map((file) => `${file.path} ${file.change}`).join();
    case "context.compacted":
      return `${event.droppedMessages} ${event.summaryMessageId}`;
    case "decision.requested":
      return `${event.changeSetId} ${event.hunkIds.join()}`;
    case "decision.resolved":
      return `${event.requestId} ${event.by}`;
    case "plan.updated":
      return event.items.map((item) => `${item.state} ${item.text}`).join();
    case "review.updated":
      return event.findings.map((one) => `${one.state} ${one.path}:${one.range?.start.line} ${one.title}`).join();
    case "budget.updated":
      return `${event.state} ${event.forecast} ${event.currency}`;
    case "notice":
      return event.code;
    default:
      return never(event);
  }
}

function blockWords(block: Block): string {
  switch (block.type) {
    case "text":
    case "thinking":
      return block.text;
    case "image":
      return block.mediaType;
    case "resource":
      return block.uri;
    case "tool_use":
      return block.name;
    case "tool_result":
      return block.summary;
    default:
      return never(block);
  }
}

declare function never(value: never): string;

onNotification("kode/event", ({ sessionId, events }) => events.map((e) => `${sessionId}${e.seq}`));
onNotification("kode/delta", ({ deltas }) => deltas.map((d) => d.at + d.add.length));
onRequest("kode/permission/request", ({ options }) => ({
  optionId: options.find((option) => option.kind === "reject")?.optionId ?? "",
}));
onRequest("kode/ask", ({ choices, multi }) => ({ choices: multi ? choices : choices.slice(0, 1) }));

void request("kode/skills/list", {}).then(({ skills, problems, projectTrusted }) => [
  ...skills.map((skill) => `${skill.id} ${skill.source} ${(skill.tags ?? []).join()}`),
  ...problems.map((problem) => `${problem.file} ${problem.line ?? 0} ${projectTrusted}`),
]);
void request("kode/memory/list", { state: "candidate" }).then(({ memories, mode }) =>
  request("kode/memory/decide", {
    decisions: memories.map(({ memoryId }) => ({
      memoryId,
      action: mode === "disabled" ? "reject" : "accept",
    })),
  }),
);

export const active: KodeErrors["TurnActive"] = -33003;
export const state: HunkState = "superseded";

// What the server sends may be a word to come; what a client sends may not.
void request("kode/session/new", { _meta: { mine: 1 } }).then(({ session }) => {
  const mode: Mode | Unknown = session.mode;
  const shown = mode === "auto" ? "at once" : mode;
  // @ts-expect-error a word to come is not one that this server takes
  void request("kode/session/new", { title: shown, mode: session.mode });
});

// @ts-expect-error there is no such method
void request("kode/session/newer", {});
// @ts-expect-error `input` is required
void request("kode/turn/start", { sessionId: "s" });
// @ts-expect-error one of four modes
void request("kode/session/new", { mode: "yolo" });
// @ts-expect-error one of two actions
void request("kode/memory/decide", { decisions: [{ memoryId: "m", action: "maybe" }] });
// @ts-expect-error a member that does not exist
void request("kode/turn/cancel", { session: "s" });
// @ts-expect-error a block is told by its type
export const block: Block = { type: "txt", text: "x" };
// @ts-expect-error not a state of hunks
export const wrong: HunkState = "decided";
