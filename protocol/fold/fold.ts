// What an editor shows of one session: feed it what is sent, read the fields. A snapshot with pages of
// `kode/message/list`, a replay and the stream lead to the same fields, as in `fold.py` and `fold.lua`.
import type * as kode from "../kode";

/** A block as far as it has come; `open` until `block.completed`, `points` code points long. */
export type FoldedBlock = { id: string; messageId: string; block: kode.Block; open: boolean; text: string; points: number };
export type FoldedMessage = Omit<kode.Message, "content" | "sessionId"> & { blocks: string[]; complete: boolean };
export type FoldedHunk = kode.HunkView & { changeSetId: string; turnId: string; uri: string; path: string; eol: string };
export type FoldedChangeSet = { id: string; turnId: string; state: kode.ChangeSetView["state"]; hunks: string[] };
type Sent = Partial<kode.Message> & { type?: string; seq?: number; ts?: string; turnId?: string; messageId?: string };
type Events = { [T in kode.Event["type"]]: Extract<kode.Event, { type: T }> };
export const NOTHING_USED: kode.Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const NOTHING_SAID = { role: "user" as const, depth: 0, version: 1, createdAt: "", meta: {} };

export class Fold {
  seq = 0; title = ""; mode = ""; model = ""; meta: Record<string, unknown> = {};
  headId: string | undefined; turnId: string | undefined;
  usage = NOTHING_USED; cost: kode.Cost | undefined; plan: readonly kode.PlanItem[] = []; findings: readonly kode.FindingView[] = [];
  waiting: kode.ModelWaiting | undefined; lastTurn: kode.TurnCompleted | undefined;
  readonly messages = new Map<string, FoldedMessage>();
  readonly blocks = new Map<string, FoldedBlock>();
  /** From the block of a call to that of its result. */
  readonly results = new Map<string, string>();
  readonly changeSets = new Map<string, FoldedChangeSet>();
  readonly hunks = new Map<string, FoldedHunk>();
  readonly scouts = new Map<string, kode.ScoutUpdated>();
  readonly progress = new Map<string, kode.ToolProgress>();
  readonly pending = new Map<string, kode.PermissionRequested | kode.AskRequested | kode.DecisionRequested>();
  readonly notices: kode.Notice[] = [];
  /** Messages, blocks and change sets that look different since somebody last emptied this. */
  readonly touched = new Set<string>();

  /** Without `texts` it follows a session, and keeps nothing of what was said in it. */
  constructor(private readonly options: { texts: boolean } = { texts: true }) {}

  /** Take the answer of `kode/session/attach`: a replay, or a snapshot into a new fold. */
  attach(sent: kode.SessionAttachResult): void {
    for (const event of sent.events ?? []) this.event(event);
    if (sent.mode === "snapshot") this.snapshot(sent);
    for (const { blockId, text } of sent.openBlocks ?? []) {
      const known = this.blocks.get(blockId);
      if (known?.open) Object.assign(known, { text, points: [...text].length });
    }
    Object.assign(this, { seq: sent.seq, turnId: sent.activeTurnId });
  }

  /** Take complete messages: those of a snapshot, or a page of `kode/message/list`. */
  page(messages: readonly kode.Message[]): void {
    for (const message of messages) this.message(message.id, message, true);
  }

  /** Take a change set: of an event, a snapshot, or `kode/changeSet/get`. */
  changeSet({ changeSetId, turnId = "", state, files = [] }: kode.ChangeSetView | kode.ChangeSetUpdated): void {
    const known: FoldedChangeSet = this.changeSets.get(changeSetId) ?? { id: changeSetId, turnId, state, hunks: [] };
    this.changeSets.set(changeSetId, Object.assign(known, { state }));
    for (const { uri, path, hunks, base } of files)
      for (const hunk of hunks) {
        const before = this.hunks.get(hunk.hunkId);
        if (!before) known.hunks.push(hunk.hunkId);
        const place = { changeSetId, turnId: known.turnId, uri, path, eol: base?.eol ?? before?.eol ?? "\n" };
        this.hunks.set(hunk.hunkId, { ...before, ...hunk, ...place });
      }
    this.touched.add(changeSetId);
  }

  /** Add what is new of a delta; `at` counts code points. */
  delta({ blockId, at, add }: kode.BlockDelta): void {
    const known = this.blocks.get(blockId);
    if (!known?.open || at > known.points) return;
    const more = [...add].slice(known.points - at);
    known.text += more.join("");
    known.points += more.length;
    this.touched.add(blockId).add(known.messageId);
  }

  /** Fold one event; false if it was sent before. */
  event<T extends keyof Events>(event: Events[T]): boolean {
    if (event.seq && event.seq <= this.seq) return false;
    Object.assign(this, { seq: event.seq || this.seq, waiting: event.turnId ? undefined : this.waiting });
    this.on[event.type]?.(event);
    return true;
  }

  /** What each kind of event does; kinds that came later do nothing. */
  private readonly on: { [T in keyof Events]?: (event: Events[T]) => void } = {
    "turn.started": ({ turnId }) => Object.assign(this, { turnId, lastTurn: undefined }),
    "turn.completed": (event) => {
      Object.assign(this, { turnId: undefined, lastTurn: event });
      [this.progress, this.pending].forEach((over) => over.clear());
    },
    "message.added": (event) => Object.assign(this, { headId: this.message(event.messageId, event, false) }),
    "message.completed": (event) => this.message(event.messageId, event, true),
    "block.started": ({ messageId, blockId, block }) => this.block(messageId, blockId, block, true),
    "block.completed": ({ messageId, blockId, block }) => this.block(messageId, blockId, block, false),
    "block.dropped": ({ messageId, blockId }) => {
      this.blocks.delete(blockId);
      const message = this.messages.get(messageId);
      if (message) message.blocks = message.blocks.filter((id) => id !== blockId);
      this.touched.add(messageId);
    },
    "changeSet.updated": (event) => this.changeSet(event),
    "scout.updated": (event) => this.scouts.set(event.scoutId, event),
    "tool.progress": (event) => [event.toolUseId, ...(event.siblingToolUseIds ?? [])].forEach((id) => this.progress.set(id, event)),
    "permission.requested": (event) => this.pending.set(event.requestId, event),
    "permission.resolved": ({ requestId }) => this.pending.delete(requestId),
    "ask.requested": (event) => this.pending.set(event.requestId, event),
    "ask.resolved": ({ requestId }) => this.pending.delete(requestId),
    "decision.requested": (event) => this.pending.set(event.requestId, event),
    "decision.resolved": ({ requestId }) => this.pending.delete(requestId),
    "session.updated": ({ title = this.title, mode = this.mode, model = this.model, meta = this.meta, headId = this.headId }) =>
      Object.assign(this, { title, mode, model, meta, headId: headId || undefined }),
    "usage.updated": ({ usage, cost }) => Object.assign(this, { usage, cost }),
    "plan.updated": ({ items }) => Object.assign(this, { plan: items }), "review.updated": ({ findings }) => Object.assign(this, { findings }),
    "model.waiting": (event) => Object.assign(this, { waiting: event }),
    notice: (event) => this.notices.push(event),
  };

  private snapshot({ session, usage, cost, lastTurn, headId, plan = [], findings = [], ...sent }: kode.SessionAttachResult): void {
    const { title = "", mode = "", model = "", meta = {} } = session ?? {};
    Object.assign(this, { title, mode, model, meta, usage, cost, lastTurn, headId, plan, findings });
    this.page(sent.messages ?? []);
    const growing = new Set(sent.openBlocks?.map(({ blockId }) => blockId));
    // A running answer stands at the tip, though the head moves there only when it is complete.
    for (const message of sent.openMessages ?? []) this.headId = this.message(message.id, message, false, growing);
    for (const changeSet of sent.changeSets ?? []) this.changeSet(changeSet);
    for (const question of [...sent.pending, ...sent.asks]) this.pending.set(question.requestId, question);
  }

  private message(id: string, sent: Sent, complete: boolean, growing?: ReadonlySet<string>): string {
    const { type: _type, seq: _seq, ts: _ts, turnId: _turn, messageId: _message, sessionId: _session, content = [], ...kept } = sent;
    this.messages.set(id, { ...(this.messages.get(id) ?? { ...NOTHING_SAID, blocks: [] }), ...kept, id, complete });
    content.forEach((block, index) => this.block(id, block.id ?? `${id}.${index}`, block, growing?.has(block.id ?? "") ?? false));
    this.touched.add(id);
    return id;
  }

  private block(messageId: string, id: string, block: kode.Block, open: boolean): void {
    const message = this.messages.get(messageId);
    if (!this.options.texts || !message) return;
    if (!this.blocks.has(id)) message.blocks.push(id);
    const text = "text" in block && typeof block.text === "string" && !open ? block.text : "";
    this.blocks.set(id, { id, messageId, block, open, text, points: 0 });
    this.touched.add(id).add(messageId);
    if (block.type !== "tool_result") return;
    const isCall = (call?: kode.Block): boolean => call?.type === "tool_use" && call.toolUseId === block.toolUseId;
    const call = block.callBlockId || this.messages.get(message.parentId ?? "")?.blocks.find((at) => isCall(this.blocks.get(at)?.block)); // older sessions do not name it
    if (call) this.results.set(call, id) && this.touched.add(call);
  }
}
