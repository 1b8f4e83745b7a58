import assert from "node:assert/strict";
import { test } from "node:test";
import { highlight, render, stableEnd } from "../src/webview/markdown";

test("what a model says is no HTML and loads nothing", () => {
  const html = render('<img src=x onerror=alert(1)> ![p](https://example.org/p.png) [go](javascript:alert(1))');
  assert.ok(!html.includes("<img") && !html.includes('href="javascript'));
});

test("code is highlighted where the language is known, and escaped where it is not", () => {
  assert.match(render("```python\ndef f(): pass\n```"), /hljs-keyword/);
  assert.match(render("```nonsense\n<b>\n```"), /&lt;b&gt;/);
  assert.equal(highlight("x".repeat(50_000), "python"), "");
});

test("a file with a line is a link, in text and in code, and nothing else is", () => {
  const places = (text: string): string[] => [...render(text).matchAll(/data-place="([^"]*)"/g)].map(([, place]) => place ?? "");
  assert.deepEqual(places("See src/a b.py:12, `茶/菜单.ts:3-9` and C:\\\\x\\\\y.c:7:2."), ["b.py:12", "茶/菜单.ts:3-9", "C:\\x\\y.c:7:2"]);
  assert.doesNotMatch(render("tea.py, main.rs:1 and a@b.de, but https://example.org"), /href="(?!#|https:\/\/example)/);
  assert.deepEqual(places("at 12:30, localhost:80, `a: 1`, [go](https://example.org/a.py:3)"), []);
});

test("a growing text is cut only between whole paragraphs", () => {
  const cut = (text: string): string => text.slice(0, stableEnd(text, 0));
  assert.equal(cut("one"), "");
  assert.equal(cut("one\n\ntwo"), "one\n\n");
  assert.equal(cut("one\n\n```js\na\n\nb\n\nc"), "one\n\n");
  assert.equal(cut("```js\na\n\nb\n```\n\ntext"), "```js\na\n\nb\n```\n\n");
  assert.equal(cut("````\n```\n\nin\n````\n\nout"), "````\n```\n\nin\n````\n\n");
  assert.equal(cut("- a\n\n- b\n\n  still b"), "");
  assert.equal(cut("1. a\n\n2. b\n\nend"), "1. a\n\n2. b\n\n");
});

test("cut at every character, the pieces together look like the whole", () => {
  const text = "# 标题\n\nfirst *one*\n\n```python\nx = 1\n\ny = 2\n```\n\n- a\n- b\n\nlast 🍵 line";
  let stable = 0;
  let done = "";
  for (let length = 1; length <= text.length; length++) {
    const cut = stableEnd(text.slice(0, length), stable);
    done += cut > stable ? render(text.slice(stable, cut)) : "";
    stable = cut;
  }
  assert.equal(done + render(text.slice(stable)), render(text));
});
