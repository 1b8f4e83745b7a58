// One view for each kind of content block. Only what the user sees is built, and only what changed.
import type { BlobReadResult, Block, ToolResultBlock, ToolUseBlock } from "../../../../protocol/kode";
import type { Fold, FoldedBlock } from "../../../../protocol/fold/fold";
import type { FromView } from "../chat/messages";
import { button, h, setText, t } from "./dom";
import { render, renderQuickly, stableEnd } from "./markdown";

const SHOWN_RESULT = 20_000;
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
      return new TextView();
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
      piece.querySelectorAll("pre").forEach(addCopyButton);
      this.tail.before(piece);
      this.stable = text.slice(0, cut);
    }
    const end = more ? "" : text.slice(cut);
    this.tail.innerHTML = open ? renderQuickly(end) : render(end);
    if (!open) this.tail.querySelectorAll("pre").forEach(addCopyButton);
    return more;
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
  readonly element = h("div", {}, this.card, this.scouts);
  private use: ToolUseBlock | undefined;
  private id = "";
  private built = "";

  constructor(
    private readonly fold: Fold,
    private readonly post: Post,
  ) {
    this.card.addEventListener("toggle", () => this.fill());
  }

  update({ block, id, open }: FoldedBlock): void {
    if (block.type !== "tool_use") return;
    this.use = block;
    this.id = id;
    const result = this.result();
    const status = result ? (result.status ?? (result.isError ? "error" : "ok")) : "running";
    this.card.dataset.status = status;
    setText(this.state, { ok: "✓", error: "!", denied: "⊘", cancelled: "–", running: "" }[status] ?? "");
    this.state.setAttribute("aria-label", { ok: t("done"), error: t("failed"), denied: t("denied"), cancelled: t("cancelled"), running: t("running") }[status] ?? "");
    const progress = this.fold.progress.get(block.toolUseId);
    const doing = progress && !result ? [progress.message, progress.total ? `${progress.completed ?? 0}/${progress.total}` : ""].filter(Boolean).join(" ") : "";
    setText(this.title, result?.summary || [toolTitle(block, open), doing].filter(Boolean).join(" · "));
    this.showScouts();
    this.fill();
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

function toolTitle({ name, input = {} }: ToolUseBlock, open: boolean): string {
  const subject = [input.path, input.pattern, input.query, input.title, input.question].find((value) => typeof value === "string");
  return [name, subject ?? (open ? "…" : "")].filter(Boolean).join(" ");
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

function addCopyButton(pre: HTMLPreElement): void {
  const copy = button(t("Copy"), () => {
    void navigator.clipboard.writeText(pre.querySelector("code")?.textContent ?? "");
    setText(copy, t("Copied"));
  });
  copy.className = "copy";
  pre.append(copy);
}
