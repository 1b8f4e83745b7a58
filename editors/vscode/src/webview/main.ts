// The chat view's entry: folds what the extension tells, and draws it.
import type { BlockDelta, Event } from "../../../../protocol/kode";
import type { FromView, ToView } from "../chat/messages";
import { Fold } from "../../../../protocol/fold/fold";
import { Cards } from "./cards";
import { Composer } from "./composer";
import { button, h, setStrings, t } from "./dom";
import { Transcript } from "./transcript";

const vscode = acquireVsCodeApi<{ drafts: Record<string, never> }>();
const post = (message: FromView): void => vscode.postMessage(message);
let fold = new Fold();
let transcript: Transcript | undefined;
let composer: Composer | undefined;
let cards: Cards | undefined;
let welcome: HTMLElement | undefined;

function build(): void {
  const toTranscript = (message: FromView): void => {
    if (message.type === "send") transcript?.follow();
    post(message);
  };
  composer = new Composer({ get: () => vscode.getState(), set: (kept) => void vscode.setState(kept as never) }, toTranscript);
  transcript = new Transcript(
    () => fold,
    post,
    (message, text) => composer?.edit(message, text),
  );
  cards = new Cards(post, () => composer?.focus());
  const say = (text: string) => (): void => composer?.prefill(text);
  const ideas = [t("Explain this project to me."), t("Find a bug in the open file and mend it."), t("Write a test for the selection.")];
  welcome = h("div", { class: "welcome" }, h("h2", { text: t("What shall we do?") }), h("p", { text: t("kode reads what your editor shows, saved or not, and proposes edits. You decide about every one of them.") }), ...ideas.map((idea) => button(idea, say(idea), { class: "idea" })));
  document.body.replaceChildren(welcome, transcript.element, cards.element, composer.element);
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest("a[href]");
    if (!link) return;
    event.preventDefault();
    const [, path = "", line = "1"] = /^(.*?):(\d+)/.exec(link.getAttribute("data-place") ?? "") ?? [];
    if (path) post({ type: "openPlace", path, line: Number(line) });
    else post({ type: "link", href: link.getAttribute("href") ?? "" });
  });
}

function isDelta(item: Event | BlockDelta): item is BlockDelta {
  return "add" in item;
}

function draw(): void {
  welcome?.toggleAttribute("hidden", fold.messages.size > 0);
  transcript?.element.toggleAttribute("hidden", fold.messages.size === 0);
  transcript?.invalidate();
}

window.addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  switch (data.type) {
    case "start":
      setStrings(data.strings);
      build();
      break;
    case "snapshot":
      fold = new Fold();
      if (data.told) fold.attach(data.told);
      transcript?.reset();
      break;
    case "page":
      fold.page(data.messages);
      break;
    case "stream":
      for (const item of data.items) {
        if (isDelta(item)) fold.delta(item);
        else {
          fold.event(item);
          transcript?.say(item);
        }
      }
      break;
    case "state":
      composer?.show(data.state);
      return;
    case "attach":
      composer?.attach(data.attachment);
      return;
    case "questions":
      cards?.show(data.questions);
      return;
    case "giveBack":
      composer?.takeBack(data.text, data.attachments);
      return;
    case "focus":
      if (!data.question || !cards?.focus()) composer?.focus();
      return;
  }
  draw();
});

post({ type: "ready" });
