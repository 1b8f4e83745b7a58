// Questions as cards. They never take the keyboard, and keys count only after the user has moved into one.
import type { PermissionOption } from "../../../../protocol/kode";
import type { Question } from "../chat/messages";
import type { Post } from "./blocks";
import { button, h, t } from "./dom";
import { highlight } from "./markdown";

/** What was aimed at something else, and hits a card that has just come, does not count. */
const SETTLE_MS = 500;

export class Cards {
  readonly element = h("section", { class: "questions", label: t("Questions") });
  private readonly cards = new Map<string, HTMLElement>();

  constructor(
    private readonly post: Post,
    private readonly leave: () => void,
  ) {}

  show(questions: readonly Question[]): void {
    const wanted = new Set(questions.map(({ requestId }) => requestId));
    for (const [id, card] of this.cards)
      if (!wanted.has(id)) {
        if (card.contains(document.activeElement)) this.leave();
        card.remove();
        this.cards.delete(id);
      }
    for (const question of questions) if (!this.cards.has(question.requestId)) this.add(question);
    this.element.hidden = !questions.length;
  }

  /** The first answer of the oldest card, which is the safe one. */
  focus(): boolean {
    const first = this.element.querySelector<HTMLElement>("button, input");
    if (first instanceof HTMLButtonElement) first.disabled = false; // the user has come here
    first?.focus();
    return first !== null;
  }

  private add(question: Question): void {
    const card = "options" in question ? this.permission(question) : this.choice(question);
    card.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.leave();
      if (event.repeat) event.preventDefault(); // held since before
      else walk(card, event);
    });
    const buttons = card.querySelectorAll("button");
    for (const each of buttons) each.disabled = true;
    setTimeout(() => buttons.forEach((each) => (each.disabled = false)), SETTLE_MS);
    this.cards.set(question.requestId, card);
    this.element.append(card);
  }

  private permission({ requestId, title, reason, diff, options }: Extract<Question, { options: unknown }>): HTMLElement {
    const shown = h("pre", { class: "diff", tabindex: "0" });
    if (diff) shown.innerHTML = highlight(diff, "diff");
    const safeFirst = [...options].sort((a, b) => Number(b.kind === "reject") - Number(a.kind === "reject"));
    const answers = safeFirst.map((option) => button(optionName(option), () => this.post({ type: "answer", requestId, chosen: [option.optionId] }), { class: "secondary" }));
    return frame(title, h("p", { class: "faint", text: reason ?? "" }), diff && shown, h("div", { class: "answers" }, ...answers));
  }

  private choice({ requestId, question, choices, multi }: Extract<Question, { choices: unknown }>): HTMLElement {
    const answer = (chosen: string[], words?: string): void => this.post({ type: "answer", requestId, chosen, words });
    const boxes = choices.map((choice) => h("input", { type: "checkbox", value: choice }));
    const own = h("input", { type: "text", class: "own", placeholder: t("Or in your own words"), label: t("Or in your own words") });
    own.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing && !event.repeat && own.value.trim()) answer([], own.value.trim());
    });
    const done = button(t("Answer"), () => answer(boxes.filter((box) => box.checked).map((box) => box.value)), { class: "secondary" });
    const ways = multi ? [...boxes.map((box) => h("label", {}, box, box.value)), done] : choices.map((choice) => button(choice, () => answer([choice]), { class: "secondary" }));
    return frame(question, h("div", { class: `answers${multi ? " many" : ""}` }, ...ways), own);
  }
}

function frame(title: string, ...inside: (HTMLElement | string | undefined)[]): HTMLElement {
  return h("div", { class: "question", role: "group", label: title }, h("strong", { text: title }), ...inside);
}

/** Arrows go from answer to answer. */
function walk(card: HTMLElement, event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  const answers = [...card.querySelectorAll<HTMLElement>(".answers button, .answers input, .own")];
  const at = answers.indexOf(document.activeElement as HTMLElement);
  if (!step || at < 0 || document.activeElement?.matches(".own")) return;
  answers[at + step]?.focus();
  event.preventDefault();
}

/** In the user's language, where we know what it means. */
function optionName({ optionId, name }: PermissionOption): string {
  const names: Record<string, string> = {
    reject: t("No"),
    "allow-once": t("Allow once"),
    "allow-session": t("Allow in this session"),
    "save-and-run": t("Save and run"),
    "run-on-disk": t("Run on the files on disk"),
    trust: t("Trust this workspace, and run it"),
  };
  const always = /^Always allow (.*)$/s.exec(name)?.[1];
  return always ? t("Always allow {0}", always) : (names[optionId] ?? name);
}
