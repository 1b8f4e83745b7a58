// The sessions that are open here, and the one that the chat shows. Keeps no text: the view does.
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Budget, BudgetUpdated, ChangeSetView, ContextUse, ErrorInfo, Event, HunkView, Message, Mode, PromptBlock, SessionAttachResult, SessionUpdateParams, TurnCompleted } from "../../../../protocol/kode";
import type { Attachment } from "../chat/messages";
import { errorInfo } from "../client/errors";
import type { Sidecar } from "../client/sidecar";
import { Fold, NOTHING_USED } from "../../../../protocol/fold/fold";

export type Prompt = { key: string; text: string; attachments: readonly Attachment[]; parentId?: string | null };

type Wish = { mode?: Mode; model?: string; effort?: SessionUpdateParams["effort"] };

export class OpenSession {
  fold = new Fold({ texts: false });
  /** Prompts that wait for the end of the turn. */
  readonly queue: Prompt[] = [];
  context: ContextUse | undefined;
  /** What the user allows it to cost. */
  budget: Budget | undefined;
  /** What was spent of each limit when the last request went out. */
  spent: BudgetUpdated | undefined;
  readOnly = false;
  failure: ErrorInfo | undefined;
  /** A prompt is under way to the sidecar. */
  sending = false;

  constructor(readonly id: string) {}

  get running(): boolean {
    return this.fold.turnId !== undefined || this.sending;
  }
}

/** `places`: hunks only stand elsewhere. */
export type Change = "shown" | "state" | "changes" | "places";

export class Sessions implements vscode.Disposable {
  shown: OpenSession | undefined;
  /** What the next new session is made with. */
  wish: Wish = {};
  private budget: Budget | undefined;
  failure: ErrorInfo | undefined;
  private readonly open = new Map<string, OpenSession>();
  private readonly changed = new vscode.EventEmitter<Change>();
  readonly onDidChange = this.changed.event;
  private readonly snapshots = new vscode.EventEmitter<SessionAttachResult | undefined>();
  /** All of the session that is shown; none for a new one. */
  readonly onSnapshot = this.snapshots.event;
  private readonly events = new vscode.EventEmitter<readonly Event[]>();
  /** Events of the session that is shown. */
  readonly onEvents = this.events.event;
  private readonly pages = new vscode.EventEmitter<readonly Message[]>();
  /** More messages of the last snapshot. */
  readonly onPage = this.pages.event;
  private readonly returned = new vscode.EventEmitter<{ text: string; attachments: readonly Attachment[] }>();
  /** Prompts of the queue that go back into the box where the user writes. */
  readonly onReturned = this.returned.event;
  private readonly finished = new vscode.EventEmitter<TurnCompleted>();
  /** A turn of any session is over, and nobody stopped it. */
  readonly onFinished = this.finished.event;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      sidecar.onEvents(({ sessionId, events }) => this.fold(sessionId, events)),
      sidecar.onMoved((changeSets) => {
        const moved = changeSets.filter((view) => isElsewhere(this.open.get(view.sessionId)?.fold, view));
        for (const view of moved) this.open.get(view.sessionId)?.fold.changeSet(view);
        if (moved.length) this.changed.fire("places");
      }),
      sidecar.onDidChangeStatus((status) => {
        if (status === "ready") void this.resume();
        this.changed.fire("state");
      }),
    ];
  }

  all(): OpenSession[] {
    return [...this.open.values()];
  }

  /** The session of a change set. */
  ofChangeSet(changeSetId: string): OpenSession | undefined {
    return this.all().find((session) => session.fold.changeSets.has(changeSetId));
  }

  /** Start afresh; the session is made with its first prompt. */
  showNew(): void {
    this.shown = undefined;
    this.failure = undefined;
    this.snapshots.fire(undefined);
    this.changed.fire("shown");
  }

  async show(sessionId: string): Promise<void> {
    const session = this.open.get(sessionId) ?? new OpenSession(sessionId);
    this.shown = session;
    await this.attach(session);
    this.changed.fire("shown");
  }

  /** Send a prompt, or queue it while a turn runs. */
  async send(text: string, attachments: readonly Attachment[] = [], parentId?: string | null): Promise<void> {
    const prompt: Prompt = { key: randomUUID(), text, attachments, parentId };
    this.failure = undefined;
    try {
      const session = this.shown ?? (await this.create());
      if (session.running) session.queue.push(prompt);
      else await this.start(session, prompt);
    } catch (error) {
      this.failure = errorInfo(error);
    }
    this.changed.fire("state");
  }

  /** Tell the running turn something; without one it is a prompt. */
  async steer(text: string, attachments: readonly Attachment[] = []): Promise<void> {
    const session = this.shown;
    const turnId = session?.fold.turnId;
    if (!session || !turnId) return this.send(text, attachments);
    try {
      await this.sidecar.request("kode/turn/steer", { sessionId: session.id, turnId, input: blocks(text, attachments) });
    } catch (error) {
      this.log.info(`steer: ${errorInfo(error).message}`);
      return this.send(text, attachments); // the turn was over by then
    }
  }

  async cancel(): Promise<void> {
    const session = this.shown;
    if (session) await this.sidecar.request("kode/turn/cancel", { sessionId: session.id });
  }

  unqueue(index: number): void {
    this.shown?.queue.splice(index, 1);
    this.changed.fire("state");
  }

  async fork(sessionId: string, messageId?: string): Promise<void> {
    const fork = await this.sidecar.request("kode/session/fork", { sessionId, messageId });
    await this.show(fork.sessionId);
  }

  async setHead(messageId: string | null): Promise<void> {
    const session = this.shown;
    if (session) await this.sidecar.request("kode/tree/setHead", { sessionId: session.id, messageId });
  }

  async update(change: Wish): Promise<void> {
    if (this.shown) await this.sidecar.request("kode/session/update", { sessionId: this.shown.id, ...change });
    Object.assign(this.wish, change);
    this.changed.fire("state");
  }

  /** What the session that is shown may cost, or the next one; no request passes it. */
  allow(budget: Budget | undefined): void {
    if (this.shown) Object.assign(this.shown, { budget, spent: undefined });
    else this.budget = budget;
    this.changed.fire("state");
  }

  allowed(): Budget | undefined {
    return this.shown ? this.shown.budget : this.budget;
  }

  /** The session is gone. */
  forget(sessionId: string): void {
    this.open.delete(sessionId);
    if (this.shown?.id === sessionId) this.showNew();
    this.changed.fire("changes");
  }

  /** Told by `kode/changeSet/get`. */
  async refresh(changeSetId: string): Promise<void> {
    const session = this.ofChangeSet(changeSetId);
    if (!session) return;
    session.fold.changeSet(await this.sidecar.request("kode/changeSet/get", { changeSetId }));
    this.changed.fire("places");
  }

  private async create(): Promise<OpenSession> {
    const made = await this.sidecar.request("kode/session/new", this.wish);
    const session = new OpenSession(made.sessionId);
    Object.assign(session.fold, { seq: made.seq, mode: made.session.mode, model: made.session.model });
    session.budget = this.budget;
    this.budget = undefined;
    this.open.set(session.id, session);
    this.shown = session;
    this.snapshots.fire({ mode: "snapshot", seq: made.seq, usage: NOTHING_USED, pending: [], asks: [] });
    this.changed.fire("shown");
    return session;
  }

  private async start(session: OpenSession, prompt: Prompt): Promise<void> {
    const { key, text, attachments, parentId } = prompt;
    const budget = session.budget ?? vscode.workspace.getConfiguration("kode").get<Budget | null>("budget");
    session.sending = true;
    session.failure = undefined;
    this.changed.fire("state");
    try {
      // The same key gives the same turn, should the answer be lost with the process.
      await this.sidecar.request("kode/turn/start", { sessionId: session.id, input: blocks(text, attachments), parentId, clientTurnKey: key, budget });
    } catch (error) {
      session.failure = errorInfo(error);
      if (this.sidecar.status !== "ready") session.queue.unshift(prompt);
      this.log.warn(`turn: ${session.failure.message}`);
    } finally {
      session.sending = false;
      this.changed.fire("state");
    }
  }

  private fold(sessionId: string, events: readonly Event[]): void {
    const session = this.open.get(sessionId);
    if (!session) return;
    for (const event of events) {
      session.fold.event(event);
      if (event.type === "usage.updated") session.context = event.context ?? session.context;
      if (event.type === "budget.updated") session.spent = event;
    }
    if (session === this.shown) this.events.fire(events);
    if (events.some((event) => event.type === "changeSet.updated")) this.changed.fire("changes");
    if (!events.every((event) => event.type.startsWith("block."))) this.changed.fire("state");
    const over = events.find((event) => event.type === "turn.completed");
    if (over && over.stopReason !== "cancelled") this.finished.fire(over);
    if (over?.stopReason === "cancelled" || over?.stopReason === "error") this.giveBack(session);
    else if (over) void this.next(session);
  }

  /** After a turn that was stopped or has failed the user decides what becomes of the queue. */
  private giveBack(session: OpenSession): void {
    const queue = session.queue.splice(0);
    if (!queue.length || session !== this.shown) return void session.queue.push(...queue);
    this.returned.fire({ text: queue.map(({ text }) => text).join("\n\n"), attachments: queue.flatMap(({ attachments }) => attachments) });
    this.changed.fire("state");
  }

  /** The turn is over: the next prompt of the queue. */
  private async next(session: OpenSession): Promise<void> {
    const prompt = session.queue.shift();
    if (prompt) await this.start(session, prompt);
  }

  private async inspect(session: OpenSession): Promise<void> {
    try {
      session.context = await this.sidecar.request("kode/context/inspect", { sessionId: session.id });
    } catch (error) {
      this.log.info(`context: ${errorInfo(error).message}`);
    }
    this.changed.fire("state");
  }

  /** The process is a new one: open its sessions again, and go on with what waits. */
  private async resume(): Promise<void> {
    for (const session of this.open.values()) {
      await this.replay(session);
      if (!session.running && session.queue.length) await this.next(session);
    }
  }

  /** What the new process did to a session since the last event: how its turn was closed, above all. */
  private async replay(session: OpenSession): Promise<void> {
    const { id, fold } = session;
    try {
      const told = await this.sidecar.request("kode/session/attach", { sessionId: id, afterSeq: fold.seq });
      this.fold(id, told.events ?? []);
    } catch (error) {
      this.log.info(`replay: ${errorInfo(error).message}`);
      await this.attach(session);
    }
  }

  private async attach(session: OpenSession): Promise<void> {
    const { id } = session;
    try {
      let told: SessionAttachResult;
      try {
        told = await this.sidecar.request("kode/session/attach", { sessionId: id });
        session.readOnly = false;
      } catch (error) {
        if (errorInfo(error).code !== "ReadOnly") throw error;
        told = await this.sidecar.request("kode/session/attach", { sessionId: id, access: "read" });
        session.readOnly = true;
      }
      this.open.set(id, session);
      session.fold = new Fold({ texts: false });
      session.fold.attach(told);
      session.failure = undefined;
      if (session === this.shown) this.snapshots.fire(told);
      this.changed.fire("changes");
      for (let cursor = told.cursor; cursor; ) {
        const page = await this.sidecar.request("kode/message/list", { sessionId: id, all: true, cursor });
        session.fold.page(page.messages);
        if (session === this.shown) this.pages.fire(page.messages);
        cursor = page.nextCursor;
      }
      await this.inspect(session);
    } catch (error) {
      session.failure = errorInfo(error);
      if (session.failure.code === "SessionNotFound") this.forget(id);
      this.changed.fire("state");
    }
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

/** Most keys move nothing, and to draw all lenses anew is not for nothing. */
function isElsewhere(fold: Fold | undefined, { files }: ChangeSetView): boolean {
  const known = ({ hunkId, range }: HunkView): boolean => JSON.stringify(range) === JSON.stringify(fold?.hunks.get(hunkId)?.range);
  return fold !== undefined && !files.every(({ hunks }) => hunks.every(known));
}

function blocks(text: string, attachments: readonly Attachment[]): PromptBlock[] {
  return [...(text ? [{ type: "text" as const, text }] : []), ...attachments.map(({ block }) => block)];
}
