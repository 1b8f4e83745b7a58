// One view for each kind of content block. Only what the user sees is built, and only what changed.
import type { BlobReadResult, Block, ToolResultBlock, ToolUseBlock } from "../../../../protocol/kode";
import type { Fold, FoldedBlock } from "../../../../protocol/fold/fold";
import type { FromView } from "../chat/messages";
import { button, h, setText, t } from "./dom";
import { render, renderQuickly, stableEnd } from "./markdown";

const SHOWN_RESULT = 20_000;
/** So much of a command's output is in sight without a key. */
const LAST_LINES = 10;
/** So many characters of Markdown are rendered for good in a frame. */
const MAX_STEP = 2500;

export type Post = (message: FromView) => void;

export interface BlockView {
  readonly element: HTMLElement;
  /** True when there is more to draw than fits into a frame: call it again with the next one. */
  update(block: FoldedBlock): boolean | void;
}

export function makeView(block: Block, fold: Fold, post: Post): BlockView | undefined {
  switch (block.type) {
    case "text":
      return new TextView(post);
    case "thinking":
      return new ThinkingView();
    case "tool_use":
      return new ToolView(fold, post);
    case "resource":
    case "image":
      return new AttachmentView(block, post);
    default:
      return undefined; // a kind that came later than this view
  }
}

/** Markdown that grows: what is stable is rendered once, only its end anew for each frame. */
class TextView implements BlockView {
  private readonly tail = h("div", { class: "tail" });
  readonly element = h("div", { class: "text" }, this.tail);
  /** What stands before the tail. */
  private stable = "";

  constructor(private readonly post: Post) {}

  update({ text, open }: FoldedBlock): boolean {
    if (!text.startsWith(this.stable)) {
      this.element.replaceChildren(this.tail); // something was missing in between
      this.stable = "";
    }
    const step = text.slice(0, this.stable.length + MAX_STEP);
    const cut = stableEnd(step, this.stable.length);
    const more = cut > this.stable.length && step.length < text.length;
    if (cut > this.stable.length) {
      const piece = h("div", { class: "piece" });
      piece.innerHTML = render(text.slice(this.stable.length, cut));
      this.addButtons(piece);
      this.tail.before(piece);
      this.stable = text.slice(0, cut);
    }
    const end = more ? "" : text.slice(cut);
    this.tail.innerHTML = open ? renderQuickly(end) : render(end);
    if (!open) this.addButtons(this.tail);
    return more;
  }

  /** What can be done with a block of code. */
  private addButtons(inside: HTMLElement): void {
    for (const pre of inside.querySelectorAll("pre")) {
      const code = pre.querySelector("code");
      const text = code?.textContent ?? "";
      const language = /language-(\S+)/.exec(code?.className ?? "")?.[1] ?? "";
      const copy = button(t("Copy"), () => {
        void navigator.clipboard.writeText(text);
        setText(copy, t("Copied"));
      });
      const apply = (): void => this.post({ type: "send", text: `${t("Apply this code to the file that it belongs to, as an edit.")}\n\n\`\`\`${language}\n${text}\`\`\``, attachments: [] });
      const ways = [button(t("Apply as an edit"), apply, { title: t("The model puts it into its place, for you to review") }), button(t("Insert"), () => this.post({ type: "insert", text }), { title: t("At the cursor of the editor") }), copy];
      pre.append(h("div", { class: "ways" }, ...ways));
    }
  }
}

class ThinkingView implements BlockView {
  private readonly body = h("div", { class: "thought" });
  private readonly title = h("summary");
  readonly element = h("details", { class: "thinking" }, this.title, this.body);
  private text = "";

  constructor() {
    this.element.addEventListener("toggle", () => this.fill());
  }

  update({ block, text, open }: FoldedBlock): void {
    this.text = text;
    const hidden = block.type === "thinking" && block.redacted;
    setText(this.title, open ? t("Thinking …") : hidden ? t("Thought (hidden by the model's host)") : t("Thought"));
    this.element.classList.toggle("running", open);
    this.element.hidden = !open && !text && !hidden;
    this.fill();
  }

  private fill(): void {
    if (this.element.open) setText(this.body, this.text);
  }
}

/** A tool call and its result, collapsed; the inside is built when it is opened. */
class ToolView implements BlockView {
  private readonly state = h("span", { class: "state" });
  private readonly title = h("span", { class: "title" });
  private readonly body = h("div", { class: "inside" });
  private readonly card = h("details", { class: "tool" }, h("summary", {}, this.state, this.title), this.body);
  private readonly scouts = h("ul", { class: "scouts", label: t("Scouts") });
  private readonly output = h("pre", { class: "output", label: t("Output") });
  readonly element = h("div", {}, this.card, this.output, this.scouts);
  private use: ToolUseBlock | undefined;
  private id = "";
  private built = "";

  constructor(
    private readonly fold: Fold,
    private readonly post: Post,
  ) {
    this.card.addEventListener("toggle", () => {
      this.fill();
      this.showOutput(this.use?.kind === "run");
    });
  }

  update({ block, id, open }: FoldedBlock): void {
    if (block.type !== "tool_use") return;
    this.use = block;
    this.id = id;
    const result = this.result();
    const status = result ? (result.status ?? (result.isError ? "error" : "ok")) : "running";
    this.card.dataset.status = status;
    const signs: Record<string, string> = { ok: "✓", error: "!", denied: "⊘", cancelled: "–", running: "" };
    setText(this.state, signs[status] ?? "!");
    const labels: Record<string, string> = { ok: t("done"), error: t("failed"), denied: t("denied"), cancelled: t("cancelled"), running: t("running") };
    this.state.setAttribute("aria-label", labels[status] ?? t("failed"));
    const progress = this.fold.progress.get(block.toolUseId);
    const doing = progress && !result ? [progress.message, progress.total ? `${progress.completed ?? 0}/${progress.total}` : ""].filter(Boolean).join(" ") : "";
    const runs = block.kind === "run";
    setText(this.title, (runs ? [toolTitle(block, open), result?.summary ?? doing] : [result?.summary || toolTitle(block, open), doing]).filter(Boolean).join(" · "));
    this.showScouts();
    this.showOutput(runs);
    this.fill();
  }

  /** The end of what a command says, while it runs and after; opened, the card has all of it. */
  private showOutput(runs: boolean): void {
    const found = this.fold.blocks.get(this.fold.results.get(this.id) ?? "");
    const said = !runs || !found ? "" : found.open ? found.text : resultText(found.block);
    const lines = said.trimEnd().split("\n");
    this.output.hidden = !said.trim() || (this.card.open && !found?.open);
    setText(this.output, (this.card.open ? lines : lines.slice(-LAST_LINES)).join("\n").slice(-SHOWN_RESULT));
  }

  private result(): ToolResultBlock | undefined {
    const found = this.fold.blocks.get(this.fold.results.get(this.id) ?? "");
    return found?.block.type === "tool_result" && !found.open ? found.block : undefined;
  }

  private showScouts(): void {
    const scouts = [...this.fold.scouts.values()].filter((scout) => scout.toolUseId === this.use?.toolUseId);
    this.scouts.hidden = !scouts.length;
    const rows = scouts.map((scout) => {
      const seconds = scout.elapsedMs === undefined ? "" : `${Math.round(scout.elapsedMs / 1000)} s`;
      const calls = scout.toolCalls === undefined ? "" : t("{0} calls", scout.toolCalls);
      return h("li", { "data-state": scout.state }, h("span", { class: "dot" }), h("span", { text: scout.title }), h("span", { class: "faint", text: [scoutState(scout.state), calls, seconds].filter(Boolean).join(" · ") }));
    });
    this.scouts.replaceChildren(...rows);
  }

  private fill(): void {
    if (!this.card.open || !this.use) return;
    const result = this.result();
    const key = `${JSON.stringify(this.use.input ?? this.use.invalidInput)}${result?.id ?? ""}`;
    if (key === this.built) return;
    this.built = key;
    this.body.replaceChildren(h("pre", { text: this.use.invalidInput ?? JSON.stringify(this.use.input ?? {}, null, 2) }));
    if (!result) return;
    for (const part of result.content ?? []) {
      if (part.type === "image") this.body.append(picture(part.mediaType, part.data));
      else {
        const cut = part.text.length > SHOWN_RESULT;
        this.body.append(h("pre", { class: "result", text: cut ? `${part.text.slice(0, SHOWN_RESULT)}…` : part.text }));
        const { blob } = part;
        if (blob) this.body.append(this.whole(blob.ref, blob.bytes));
      }
    }
    if (result.artifact) this.body.append(this.whole(result.artifact.ref, result.artifact.bytes));
  }

  private whole(ref: string, bytes: BlobReadResult["bytes"]): HTMLElement {
    const title = this.use?.name ?? "";
    return button(t("Open all of it ({0} KB)", Math.ceil(bytes / 1024)), () => this.post({ type: "blob", ref, title }));
  }
}

class AttachmentView implements BlockView {
  readonly element: HTMLElement;

  constructor(block: Block, post: Post) {
    if (block.type === "image") this.element = picture(block.mediaType, block.data);
    else if (block.type === "resource") {
      const name = decodeURIComponent(block.uri.split("/").pop() ?? block.uri);
      const lines = block.startLine ? `:${block.startLine}-${block.endLine ?? block.startLine}` : "";
      const open = (): void => post({ type: "open", uri: block.uri, line: block.startLine ?? undefined });
      this.element = button(`${name}${lines}`, open, { class: "chip", title: block.uri });
    } else this.element = h("span");
  }

  update(): void {
    // it never changes
  }
}

function picture(mediaType: string, data: string): HTMLElement {
  return h("img", { class: "picture", src: `data:${mediaType};base64,${data}`, alt: t("Picture") });
}

function resultText(block: Block): string {
  return block.type === "tool_result" ? (block.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("\n") : "";
}

function toolTitle({ name, title }: ToolUseBlock, open: boolean): string {
  return title || [name, open ? "…" : ""].filter(Boolean).join(" ");
}

function scoutState(state: string): string {
  const names: Record<string, string> = {
    running: t("looking"),
    reporting: t("writing its report"),
    done: t("done"),
    failed: t("failed"),
    timed_out: t("out of time"),
    cancelled: t("cancelled"),
  };
  return names[state] ?? state;
}
