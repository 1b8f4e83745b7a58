// Markdown of a model as HTML: no HTML of its own, no pictures from elsewhere, code highlighted.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import lua from "highlight.js/lib/languages/lua";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import MarkdownIt from "markdown-it";

const MAX_HIGHLIGHTED = 30_000;
const MAX_QUICK = 1500;
const LANGUAGES = { bash, cpp, csharp, css, diff, go, java, javascript, json, lua, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** A file and a line, as models and compilers write them. */
const PLACE = /(?:[A-Za-z]:[\\/])?[\p{L}\p{N}_.@~+\\/-]*\.[A-Za-z][A-Za-z0-9]*:\d+(?:-\d+)?(?::\d+)?/gu;

const coloured = new MarkdownIt({ html: false, linkify: true, highlight }).disable("image").use(linkPlaces);
const plain = new MarkdownIt({ html: false, linkify: true }).disable("image").use(linkPlaces);

/** Places become links, in text and in inline code; not inside other links. */
function linkPlaces(markdown: InstanceType<typeof MarkdownIt>): void {
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // `tea.py` is no host in Paraguay
  const { text, code_inline: code } = markdown.renderer.rules;
  const linked = (html: string): string => html.replace(PLACE, (place) => `<a href="#" data-place="${place}">${place}</a>`);
  const inLink = (tokens: { type: string }[], index: number): boolean =>
    tokens.slice(0, index).reduce((depth, { type }) => depth + (type === "link_open" ? 1 : type === "link_close" ? -1 : 0), 0) > 0;
  for (const [name, rule] of Object.entries({ text, code_inline: code }))
    markdown.renderer.rules[name] = (tokens, index, ...others) => {
      const html = rule?.(tokens, index, ...others) ?? "";
      return inLink(tokens, index) ? html : linked(html);
    };
}

export function render(text: string): string {
  return coloured.render(text);
}

/** For what is rendered again with the next frame: colours come when it is whole. */
export function renderQuickly(text: string): string {
  return (text.length > MAX_QUICK ? plain : coloured).render(text);
}

export function highlight(code: string, language: string): string {
  if (!hljs.getLanguage(language) || code.length > MAX_HIGHLIGHTED) return "";
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/**
 * Where a text that still grows may be cut, so that what lies before needs no second rendering:
 * after the last empty line outside a code fence that something not indented follows.
 */
export function stableEnd(text: string, from: number): number {
  let fence = "";
  let cut = from;
  let emptyBefore = false;
  for (let start = from; start < text.length; ) {
    const end = text.indexOf("\n", start);
    const line = end < 0 ? text.slice(start) : text.slice(start, end);
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (!fence && emptyBefore && /^[^\s]/.test(line) && !/^([-*+]|\d+[.)])(\s|$)/.test(line)) cut = start;
    if (fence) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = "";
    } else if (mark) fence = mark;
    emptyBefore = !fence && line.trim() === "";
    if (end < 0) break;
    start = end + 1;
  }
  return cut;
}
