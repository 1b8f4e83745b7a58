// The little that the view needs to make elements and to speak the user's language.
type Child = Node | string | undefined | false;
type Properties = { class?: string; title?: string; label?: string; text?: string; on?: () => void; [attribute: string]: unknown };

let strings: Record<string, string> = {};

export function setStrings(told: Record<string, string>): void {
  strings = told;
}

/** The text in the user's language; `{0}` is the first of `values`. */
export function t(text: string, ...values: (string | number)[]): string {
  return (strings[text] ?? text).replace(/\{(\d)\}/g, (_, index: string) => String(values[Number(index)]));
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, properties: Properties = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name === "class") element.className = String(value);
    else if (name === "text") element.textContent = String(value);
    else if (name === "label") element.setAttribute("aria-label", String(value));
    else if (name === "on") element.addEventListener("click", value as () => void);
    else element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
  return element;
}

export function button(text: string, on: () => void, properties: Properties = {}): HTMLButtonElement {
  return h("button", { type: "button", text, on, ...properties });
}

/** Set the text only where it differs: a screen reader reads what is set. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
