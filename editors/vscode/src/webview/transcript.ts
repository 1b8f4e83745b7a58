// The conversation on the screen: one row for each message of the branch, the newest ones first built.
import type { Event } from "../../../../protocol/kode";
import { branch, isPrompt, tip, versions } from "../session/branches";
import type { Fold, FoldedMessage } from "../../../../protocol/fold/fold";
import { type BlockView, makeView, type Post } from "./blocks";
import { button, h, setText, t } from "./dom";

/** So many messages are on the page at first, and with each look further back. */
const PAGE = 60;
const NEAR_END_PX = 8;

export class Transcript {
  private readonly list = h("div", { class: "rows" });
  private readonly earlier = button(t("Show earlier messages"), () => this.showMore(), { class: "earlier" });
  private readonly ending = h("div", { class: "ending" });
  private readonly spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  private readonly down = button("↓", () => this.follow(), { class: "down", title: t("Go to the end"), label: t("Go to the end") });
  readonly element = h("main", { class: "transcript", role: "log", "aria-live": "off", tabindex: "0", label: t("Conversation") }, this.earlier, this.list, this.ending, this.down, this.spoken);
  private readonly rows = new Map<string, Row>();
  private shown = PAGE;
  private frame = 0;
  private arranged = "";
  /** The end stays in sight until the user goes back by their own hand. */
  private following = true;
  private readonly seconds = h("span");
  private counted: string | undefined;
  private clock: ReturnType<typeof setInterval> | undefined;
  private byHand = false;
  private top = 0;

  constructor(
    private readonly fold: () => Fold,
    private readonly post: Post,
    private readonly edit: (message: FoldedMessage, text: string) => void,
  ) {
    new IntersectionObserver(([entry]) => entry?.isIntersecting && this.showMore(), { root: this.element }).observe(this.earlier);
    this.element.addEventListener("keydown", (event) => this.walk(event));
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) this.element.addEventListener(kind, () => (this.byHand = true), { passive: true });
    this.element.addEventListener("scroll", () => this.scrolled());
    const sizes = new ResizeObserver(() => this.toEnd());
    for (const each of [this.element, this.list, this.ending]) sizes.observe(each);
  }

  /** From now on the end is in sight again. */
  follow(): void {
    this.following = true;
    this.toEnd();
  }

  private scrolled(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX) {
      this.following = true;
      this.byHand = false;
    } else if (this.byHand && scrollTop < this.top) this.following = false; // a click in a text that grows is none
    this.top = scrollTop;
    this.down.hidden = this.following;
  }

  private toEnd(): void {
    if (this.following) this.element.scrollTop = this.element.scrollHeight;
    this.down.hidden = this.following;
  }

  /** Another session, or the same one told anew. */
  reset(): void {
    this.rows.clear();
    this.list.replaceChildren();
    this.shown = PAGE;
    this.arranged = "";
    this.invalidate();
    this.follow();
  }

  /** Something changed: draw it with the next frame, however much comes until then. */
  invalidate(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Tell those who cannot see it. */
  say(event: Event): void {
    if (event.type === "turn.started") setText(this.spoken, t("kode is working"));
    if (event.type === "turn.completed") setText(this.spoken, event.error?.message ?? t("The answer is complete"));
    if (event.type === "changeSet.updated" && event.state === "proposed") setText(this.spoken, t("Edits were proposed"));
  }

  private draw(): void {
    const fold = this.fold();
    const path = branch(fold).filter((message) => message.role !== "tool");
    const visible = path.slice(-this.shown);
    this.earlier.hidden = visible.length === path.length;
    const order = visible.map((message) => `${message.id}/${versions(fold, message).length}`).join();
    if (order !== this.arranged) {
      this.arranged = order;
      this.list.replaceChildren(...visible.map((message) => this.row(message).element));
    }
    const unfinished = [...this.owners(fold)].filter((id) => this.rows.get(id)?.update());
    fold.touched.clear();
    for (const id of unfinished) fold.touched.add(id);
    if (unfinished.length) this.invalidate();
    this.end(fold);
    this.toEnd();
  }

  /** Results are shown in the cards of their calls, so a tool's message stands for the one above. */
  private owners(fold: Fold): Set<string> {
    const found = new Set<string>();
    for (const id of fold.touched) {
      let message = fold.messages.get(id);
      while (message?.role === "tool" && message.parentId) message = fold.messages.get(message.parentId);
      if (message) found.add(message.id);
    }
    return found;
  }

  private row(message: FoldedMessage): Row {
    let row = this.rows.get(message.id);
    if (!row) {
      row = new Row(message, this.fold(), this.post, this.edit);
      this.rows.set(message.id, row);
    } else row.showVersions();
    return row;
  }

  private end(fold: Fold): void {
    const { lastTurn, waiting, turnId } = fold;
    const lines: HTMLElement[] = [];
    const again = (text: string): HTMLElement => button(text, () => this.post({ type: "send", text: "", attachments: [] }), { class: "secondary" });
    const setKey = lastTurn?.error?.code === "AuthRequired" && button(t("Set a key"), () => this.post({ type: "command", command: "kode.setKey" }), { class: "primary" });
    this.count(turnId);
    if (turnId) lines.push(h("div", { class: "working", text: fold.pending.size ? t("Waits for your answer") : (waiting?.message ?? t("Working …")) }));
    else if (lastTurn?.stopReason === "error" || lastTurn?.error) lines.push(h("div", { class: "failed" }, h("span", { text: lastTurn.error?.message ?? t("The turn failed.") }), setKey, again(t("Try again"))));
    else if (lastTurn?.stopReason === "cancelled") lines.push(h("div", { class: "faint" }, h("span", { text: t("Stopped.") }), again(t("Go on"))));
    else if (lastTurn?.stopReason === "interrupted") lines.push(h("div", { class: "failed" }, h("span", { text: t("The sidecar ended in the middle of this turn.") }), again(t("Go on"))));
    else if (lastTurn?.stopReason === "max_tool_rounds") lines.push(h("div", { class: "faint" }, h("span", { text: t("The rounds of this turn are used up.") }), again(t("Go on"))));
    for (const notice of fold.notices.filter(({ level }) => level === "warning" || level === "error").slice(-3)) lines.push(h("div", { class: "notice", text: notice.message }));
    const key = lines.map((line) => line.textContent).join("\n");
    if (this.ending.dataset.key !== key) this.ending.replaceChildren(...lines);
    if (turnId && this.seconds.parentElement !== this.ending.firstElementChild) this.ending.firstElementChild?.append(this.seconds);
    this.ending.dataset.key = key;
  }

  /** How long the turn has been at work. */
  private count(turnId: string | undefined): void {
    if (turnId !== this.counted) {
      clearInterval(this.clock);
      const since = Date.now();
      setText(this.seconds, "");
      if (turnId) this.clock = setInterval(() => setText(this.seconds, ` · ${Math.round((Date.now() - since) / 1000)} s`), 1000);
    }
    this.counted = turnId;
  }

  private showMore(): void {
    if (this.earlier.hidden) return;
    this.shown += PAGE;
    this.invalidate();
  }

  /** Alt and an arrow go from message to message. */
  private walk(event: KeyboardEvent): void {
    if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    const rows = [...this.list.children] as HTMLElement[];
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = event.key === "ArrowUp" ? (at < 0 ? rows.length : at) - 1 : at + 1;
    rows[next]?.focus();
    event.preventDefault();
  }
}

class Row {
  private readonly content = h("div", { class: "content" });
  private readonly actions = h("div", { class: "actions" });
  readonly element: HTMLElement;
  private readonly views = new Map<string, BlockView>();
  private readonly states = new Map<string, unknown>();

  constructor(
    private readonly message: FoldedMessage,
    private readonly fold: Fold,
    private readonly post: Post,
    private readonly edit: (message: FoldedMessage, text: string) => void,
  ) {
    const mine = isPrompt(message);
    const folded = message.role === "user" && !mine;
    const who = mine ? t("You") : folded ? originTitle(message.meta.origin) : "kode";
    const inside = folded ? h("details", { class: "note" }, h("summary", { text: who }), this.content) : this.content;
    this.element = h("article", { class: `row ${message.role}${folded ? " folded" : ""}`, tabindex: "-1", label: who, "data-id": message.id }, inside, this.actions);
    this.showVersions();
    if (this.update()) fold.touched.add(message.id);
  }

  /** True when the next frame has to go on with it. */
  update(): boolean {
    let unfinished = false;
    const { blocks } = this.fold.messages.get(this.message.id) ?? this.message;
    for (const [id, view] of this.views)
      if (!blocks.includes(id)) {
        view.element.remove();
        this.views.delete(id);
      }
    for (const id of blocks) {
      const block = this.fold.blocks.get(id);
      if (!block) continue;
      let view = this.views.get(id);
      if (!view) {
        view = makeView(block.block, this.fold, this.post);
        if (!view) continue;
        this.views.set(id, view);
        this.content.append(view.element);
      }
      // A tool's card depends on its result, too; anything else only on its own block.
      const state = block.open ? block.text.length : block.block;
      if (block.block.type !== "tool_use" && this.states.get(id) === state) continue;
      const more = view.update(block) === true;
      this.states.set(id, more ? undefined : state);
      unfinished ||= more;
    }
    this.element.classList.toggle("failure", this.message.isApiErrorMessage === true);
    return unfinished;
  }

  showVersions(): void {
    const { message, fold } = this;
    const actions: HTMLElement[] = [];
    if (isPrompt(message)) {
      const all = versions(fold, message);
      const at = all.findIndex(({ id }) => id === message.id);
      const go = (other: FoldedMessage | undefined): void => {
        if (other) this.post({ type: "setHead", messageId: tip(fold, other.id) });
      };
      if (all.length > 1)
        actions.push(
          button("‹", () => go(all[at - 1]), { label: t("Earlier version"), disabled: at === 0 }),
          h("span", { text: `${at + 1}/${all.length}` }),
          button("›", () => go(all[at + 1]), { label: t("Later version"), disabled: at === all.length - 1 }),
        );
      if (message.meta.origin === undefined) actions.push(button(t("Edit"), () => this.edit(message, this.text())));
    }
    actions.push(button(t("Fork"), () => this.post({ type: "fork", messageId: message.id }), { title: t("Go on from here in a new session") }));
    if (message.role === "assistant") actions.push(button(t("Copy"), () => void navigator.clipboard.writeText(this.text())));
    this.actions.replaceChildren(...actions);
  }

  private text(): string {
    const blocks = (this.fold.messages.get(this.message.id)?.blocks ?? []).map((id) => this.fold.blocks.get(id));
    return blocks.map((block) => (block?.block.type === "text" ? block.text : "")).filter(Boolean).join("\n\n");
  }
}

function originTitle(origin: unknown): string {
  return origin === "compaction" ? t("Summary of what came before") : t("Note to the model");
}
