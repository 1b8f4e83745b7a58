// What an editor shows of one session: feed it the snapshot, the events and the deltas, read the
// fields. Knows neither VS Code nor the DOM, so that the extension, its chat view and the tests share it.
import type * as kode from "../../../../protocol/kode";

/** A block as far as it has come; `open` until `block.completed`, `points` code points long. */
export type FoldedBlock = { id: string; messageId: string; block: kode.Block; open: boolean; text: string; points: number };
export type FoldedMessage = Omit<kode.Message, "content" | "sessionId"> & { blocks: string[]; complete: boolean };
export type FoldedHunk = kode.HunkView & { changeSetId: string; turnId: string; uri: string; path: string; eol: string };
export type FoldedChangeSet = { id: string; turnId: string; state: kode.ChangeSetState };

export class Fold {
  seq = 0;
  title = "";
  mode = "";
  model = "";
  headId: string | undefined;
  turnId: string | undefined;
  usage: kode.Usage = {};
  cost: kode.Cost | undefined;
  waiting: kode.ModelWaiting | undefined;
  lastTurn: kode.TurnCompleted | undefined;
  readonly messages = new Map<string, FoldedMessage>();
  readonly blocks = new Map<string, FoldedBlock>();
  readonly changeSets = new Map<string, FoldedChangeSet>();
  readonly hunks = new Map<string, FoldedHunk>();
  readonly scouts = new Map<string, kode.ScoutUpdated>();
  readonly progress = new Map<string, kode.ToolProgress>();
  readonly pending = new Map<string, kode.PermissionRequested>();
  readonly notices: kode.Notice[] = [];
  /** Messages that look different since somebody last emptied this. */
  readonly touched = new Set<string>();

  /** `texts: false` follows a session without keeping what was said in it. */
  constructor(private readonly options: { texts: boolean } = { texts: true }) {}

  /** Begin with what `kode/session/attach` told; for a new fold. */
  snapshot(told: kode.SessionAttachResult): void {
    this.seq = told.seq;
    Object.assign(this, { title: told.session?.title ?? "", mode: told.session?.mode ?? "", model: told.session?.model ?? "" });
    this.headId = told.headId;
    this.turnId = told.activeTurnId;
    this.usage = told.usage;
    this.cost = told.cost;
    this.page(told.messages ?? []);
    for (const message of told.openMessages ?? []) {
      this.message(message, false);
      // A running answer stands at the tip, though the head moves there only when it is complete.
      this.headId = message.id;
    }
    for (const { blockId, text } of told.openBlocks ?? []) this.grow(this.blocks.get(blockId), 0, text);
    for (const changeSet of told.changeSets ?? []) this.changeSet(changeSet);
    for (const question of told.pending ?? []) this.pending.set(question.requestId, question);
  }

  /** More messages of a snapshot. */
  page(messages: readonly kode.Message[]): void {
    for (const message of messages) this.message(message, true);
  }

  /** A change set as `kode/changeSet/get` tells it: where its hunks stand today. */
  changeSet(view: kode.ChangeSetView): void {
    this.files(view.changeSetId, view.turnId, view.state, view.files);
  }

  event(event: kode.Event): void {
    if (event.seq !== undefined) {
      if (event.seq <= this.seq) return; // told before
      this.seq = event.seq;
    }
    if (event.turnId) this.waiting = undefined;
    (this.on[event.type] as ((event: kode.Event) => void) | undefined)?.(event);
  }

  /** What each kind of event does; kinds that came later do nothing. */
  private readonly on: { [T in kode.Event["type"]]?: (event: Extract<kode.Event, { type: T }>) => void } = {
    "turn.started": ({ turnId }) => Object.assign(this, { turnId, lastTurn: undefined }),
    "turn.completed": (event) => {
      Object.assign(this, { turnId: undefined, lastTurn: event });
      this.progress.clear();
      this.pending.clear();
    },
    "message.added": ({ type: _, ...event }) => {
      const id = event.messageId ?? "";
      if (!this.messages.has(id)) this.message({ ...event, id, sessionId: "" }, false);
      this.headId = id;
    },
    "message.completed": ({ type: _, messageId = "", ...event }) => {
      Object.assign(this.messages.get(messageId) ?? {}, event, { complete: true });
      this.touched.add(messageId);
    },
    "block.started": ({ messageId = "", blockId = "", block }) => {
      if (!this.blocks.has(blockId)) this.block(messageId, blockId, block, true);
    },
    "block.completed": ({ messageId = "", blockId = "", block }) => this.block(messageId, blockId, block, false),
    "block.dropped": ({ messageId = "", blockId = "" }) => {
      this.blocks.delete(blockId);
      const message = this.messages.get(messageId);
      if (message) message.blocks = message.blocks.filter((id) => id !== blockId);
      this.touched.add(messageId);
    },
    "changeSet.updated": ({ changeSetId, turnId = "", state, files = [] }) => this.files(changeSetId, turnId, state, files),
    "scout.updated": (event) => this.scouts.set(event.scoutId, { ...this.scouts.get(event.scoutId), ...event }),
    "tool.progress": (event) => [event.toolUseId, ...(event.siblingToolUseIds ?? [])].forEach((id) => this.progress.set(id, event)),
    "permission.requested": (event) => this.pending.set(event.requestId, event),
    "permission.resolved": ({ requestId }) => this.pending.delete(requestId),
    "session.updated": ({ title = this.title, mode = this.mode, model = this.model, headId = this.headId }) =>
      Object.assign(this, { title, mode, model, headId: headId || undefined }),
    "usage.updated": ({ usage, cost }) => Object.assign(this, { usage, cost }),
    "model.waiting": (event) => Object.assign(this, { waiting: event }),
    notice: (event) => this.notices.push(event),
  };

  delta({ blockId, at, add }: kode.BlockDelta): void {
    this.grow(this.blocks.get(blockId), at, add);
  }

  private grow(known: FoldedBlock | undefined, at: number, add: string): void {
    if (!this.options.texts || !known?.open || at > known.points) return;
    const points = [...add].length;
    const had = known.points - at;
    if (had >= points) return;
    known.text += had ? [...add].slice(had).join("") : add;
    known.points += points - had;
    this.touched.add(known.messageId);
  }

  private message({ content = [], ...message }: kode.Message, complete: boolean): void {
    this.messages.set(message.id, { ...message, blocks: [], complete });
    content.forEach((block, index) => this.block(message.id, block.id ?? `${message.id}.${index}`, block, !complete));
    this.touched.add(message.id);
  }

  private block(messageId: string, id: string, block: kode.Block, open: boolean): void {
    if (!this.options.texts) return;
    const known = this.blocks.has(id);
    const text = "text" in block && typeof block.text === "string" ? block.text : "";
    this.blocks.set(id, { id, messageId, block, open, text: open ? "" : text, points: 0 });
    if (!known) this.messages.get(messageId)?.blocks.push(id);
    this.touched.add(messageId);
  }

  private files(changeSetId: string, turnId: string, state: kode.ChangeSetState, files: readonly kode.FileView[]): void {
    const known = this.changeSets.get(changeSetId);
    this.changeSets.set(changeSetId, { id: changeSetId, turnId: known?.turnId || turnId, state });
    for (const { uri, path, hunks, base } of files)
      for (const hunk of hunks) {
        const before = this.hunks.get(hunk.hunkId);
        const place = { changeSetId, turnId: before?.turnId || turnId, uri, path, eol: base?.eol ?? before?.eol ?? "\n" };
        this.hunks.set(hunk.hunkId, { ...before, ...hunk, ...place });
      }
  }
}
