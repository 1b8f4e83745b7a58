// Where the user writes: draft, attachments, queue, pickers, send and stop.
import type { Attachment, ChatState } from "../chat/messages";
import type { FoldedMessage } from "../../../../protocol/fold/fold";
import type { Post } from "./blocks";
import { button, h, setText, t } from "./dom";

type Draft = { text: string; attachments: Attachment[] };
type Kept = { drafts: Record<string, Draft> };

export class Composer {
  private readonly input = h("textarea", { rows: "1", label: t("Prompt"), placeholder: t("Ask, or say what to change") });
  private readonly chips = h("div", { class: "chips" });
  private readonly queue = h("ol", { class: "queue", label: t("Waiting prompts") });
  private readonly banner = h("div", { class: "banner", role: "status" });
  private readonly review = h("div", { class: "review" });
  private readonly mode = button("", () => this.command("kode.pickMode"), { class: "pick", title: t("What becomes of proposed edits") });
  private readonly model = button("", () => this.command("kode.pickModel"), { class: "pick", title: t("Model") });
  private readonly meter = button("", () => this.command("kode.pickBudget"), { class: "meter" });
  private readonly attachButton = button("+", () => this.post({ type: "pickAttachment" }), { label: t("Add to the prompt"), title: t("Add to the prompt") });
  private readonly tell = button(t("Tell now"), () => this.send(true), { class: "secondary", title: t("Say it to the running turn (Ctrl+Enter)") });
  private readonly stop = button(t("Stop"), () => this.post({ type: "cancel" }), { class: "secondary", title: t("Stop the turn (Esc)") });
  private readonly go = button(t("Send"), () => this.send(false), { class: "primary" });
  readonly element: HTMLElement;
  private attachments: Attachment[] = [];
  private editing: FoldedMessage | undefined;
  private state: ChatState | undefined;

  constructor(
    private readonly kept: { get(): Kept | undefined; set(kept: Kept): void },
    private readonly post: Post,
  ) {
    const box = h("div", { class: "box" }, this.chips, this.input, h("div", { class: "tools" }, this.attachButton, this.mode, this.model, h("span", { class: "space" }), this.stop, this.tell, this.go));
    this.element = h("footer", { class: "composer" }, this.banner, this.review, this.queue, box, this.meter);
    this.input.addEventListener("input", () => this.changed());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("paste", (event) => this.take(event.clipboardData?.files, event));
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => this.take(event.dataTransfer?.files, event));
  }

  show(state: ChatState): void {
    const switched = state.sessionId !== this.state?.sessionId;
    const born = this.state?.sessionId === undefined && state.sessionId !== undefined;
    this.state = state;
    if (switched && !born) this.load();
    setText(this.mode, modeName(state.mode));
    setText(this.model, state.model || t("Model"));
    setText(this.meter, state.meter);
    this.meter.hidden = !state.meter;
    this.meter.title = state.meterTitle;
    this.stop.hidden = !state.running;
    this.showButtons();
    this.showReview(state.waiting);
    this.showBanner(state);
    const queued = state.queue.map((text, index) => h("li", {}, h("span", { text: text || "…" }), button("×", () => this.post({ type: "unqueue", index }), { label: t("Take out of the queue") })));
    this.queue.replaceChildren(...queued);
    this.queue.hidden = !queued.length;
  }

  attach(attachment: Attachment): void {
    this.attachments.push(attachment);
    this.showChips();
    this.changed();
    this.input.focus();
  }

  prefill(text: string): void {
    this.input.value = text;
    this.changed();
    this.focus();
  }

  /** Prompts of the queue that were not sent, before what is written there already. */
  takeBack(text: string, attachments: readonly Attachment[]): void {
    this.attachments.unshift(...attachments);
    this.showChips();
    this.prefill([text, this.input.value].filter(Boolean).join("\n\n"));
  }

  edit(message: FoldedMessage, text: string): void {
    this.editing = message;
    this.prefill(text);
    if (this.state) this.showBanner(this.state);
  }

  focus(): void {
    this.input.focus();
    this.input.setSelectionRange(this.input.value.length, this.input.value.length);
  }

  private send(steer: boolean): void {
    const text = this.input.value.trim();
    if (!text && !this.attachments.length) return;
    const parent = this.editing ? { parentId: this.editing.parentId ?? null } : {};
    this.post({ type: "send", text, attachments: this.attachments, steer, ...parent });
    this.editing = undefined;
    this.attachments = [];
    this.input.value = "";
    this.showChips();
    this.changed();
    if (this.state) this.showBanner(this.state);
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || event.keyCode === 229) return; // an input method is at work
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.send(event.ctrlKey || event.metaKey);
    } else if (event.key === "Escape") {
      if (this.editing) {
        this.editing = undefined;
        this.prefill("");
        if (this.state) this.showBanner(this.state);
      } else if (this.state?.running) this.post({ type: "cancel" });
    }
  }

  private take(files: FileList | undefined, event: Event): void {
    const pictures = [...(files ?? [])].filter((file) => file.type.startsWith("image/"));
    if (!pictures.length) return;
    event.preventDefault();
    for (const file of pictures) {
      const reader = new FileReader();
      reader.onload = () => {
        const data = String(reader.result).split(",", 2)[1] ?? "";
        this.attach({ label: file.name, title: file.name, block: { type: "image", mediaType: file.type, data } });
      };
      reader.readAsDataURL(file);
    }
  }

  /** The draft is kept for each session; the box grows with it. */
  private changed(): void {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 240)}px`;
    this.showButtons();
    if (this.editing) return;
    const drafts = { ...this.kept.get()?.drafts };
    const id = this.state?.sessionId ?? "";
    if (this.input.value || this.attachments.length) drafts[id] = { text: this.input.value, attachments: this.attachments };
    else delete drafts[id];
    this.kept.set({ drafts });
  }

  private load(): void {
    const draft = this.kept.get()?.drafts[this.state?.sessionId ?? ""];
    this.editing = undefined;
    this.attachments = [...(draft?.attachments ?? [])];
    this.input.value = draft?.text ?? "";
    this.showChips();
    this.changed();
  }

  private showButtons(): void {
    const running = this.state?.running ?? false;
    const empty = !this.input.value.trim() && !this.attachments.length;
    setText(this.go, running ? t("Queue") : t("Send"));
    this.go.disabled = empty;
    this.go.hidden = running && empty;
    this.tell.hidden = !running || empty || this.editing !== undefined;
  }

  private showChips(): void {
    const chips = this.attachments.map((attachment, index) => {
      const remove = (): void => {
        this.attachments.splice(index, 1);
        this.showChips();
        this.changed();
      };
      return h("span", { class: "chip", title: attachment.title }, attachment.label, button("×", remove, { label: t("Remove {0}", attachment.label) }));
    });
    this.chips.replaceChildren(...chips);
    this.chips.hidden = !chips.length;
  }

  private showReview({ hunks, files, applied }: ChatState["waiting"]): void {
    this.review.hidden = !hunks;
    if (!hunks || this.review.dataset.key === `${hunks}/${files}/${applied}`) return;
    this.review.dataset.key = `${hunks}/${files}/${applied}`;
    const text = hunks === 1 ? t("1 edit waits for you") : files === 1 ? t("{0} edits in 1 file wait for you", hunks) : t("{0} edits in {1} files wait for you", hunks, files);
    this.review.replaceChildren(
      h("span", { text }),
      button(t("Review"), () => this.command("kode.review"), { class: "primary" }),
      button(applied ? t("Keep all") : t("Accept all"), () => this.command("kode.acceptAll"), { class: "secondary" }),
      button(applied ? t("Undo all") : t("Reject all"), () => this.command("kode.rejectAll"), { class: "secondary" }),
    );
  }

  private showBanner({ failure, status, problem, readOnly, demo, sessionId }: ChatState): void {
    const parts: (HTMLElement | string)[] = [];
    const act = (text: string, command: string, argument?: string): HTMLElement => button(text, () => this.command(command, argument), { class: "secondary" });
    let kind = "info";
    if (this.editing) parts.push(t("You edit an earlier prompt: it starts a new branch. Esc leaves."));
    else if (status === "missing") {
      kind = "error";
      parts.push(problem, act(t("Settings"), "kode.openSettings"), act(t("Try again"), "kode.restart"));
    } else if (status === "waiting") {
      kind = "warning";
      parts.push(t("The sidecar ended and is started again."), problem, act(t("Show the log"), "kode.showLog"));
    } else if (failure) {
      kind = "error";
      parts.push(failure.message);
      if (failure.code === "AuthRequired") parts.push(act(t("Set a key"), "kode.setKey"), act(t("Try the demo"), "kode.demo"));
    } else if (readOnly) parts.push(t("Another window works in this session."), act(t("Go on in a copy"), "kode.forkSession", sessionId));
    else if (demo) parts.push(t("Demo: a recorded model answers."), act(t("Leave the demo"), "kode.leaveDemo"));
    const key = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("\n");
    this.banner.hidden = !parts.length;
    if (this.banner.dataset.key === key) return;
    this.banner.dataset.key = key;
    this.banner.className = `banner ${kind}`;
    this.banner.replaceChildren(...parts.filter(Boolean));
  }

  private command(command: string, argument?: string): void {
    this.post({ type: "command", command, argument });
  }
}

function modeName(mode: string): string {
  const names: Record<string, string> = { review: t("Review"), ask: t("Ask"), keep: t("Keep or undo"), auto: t("Apply at once"), plan: t("Plan only") };
  return names[mode] ?? t("Mode");
}
