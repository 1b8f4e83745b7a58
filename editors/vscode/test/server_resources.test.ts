import assert from "node:assert/strict";
import { test } from "node:test";
import type { McpServerView, PromptBlock } from "../../../protocol/kode";
import { attached, firstPlace, offers } from "../src/session/server_resources";

test("resources and templates of all servers are offered", () => {
  const servers = [
    { name: "shop", resources: [{ uri: "shop://rules", name: "rules" }], templates: [{ uriTemplate: "shop://shelf/{number}" }] },
    { name: "none" },
  ] as unknown as McpServerView[];
  assert.deepEqual(offers(servers), [
    { server: "shop", uri: "shop://rules", name: "rules", isTemplate: false },
    { server: "shop", uri: "shop://shelf/{number}", name: "shop://shelf/{number}", isTemplate: true },
  ]);
});

test("the first place of a template is selected", () => {
  assert.deepEqual(firstPlace("shop://shelf/{number}{?lang}"), [13, 21]);
  assert.deepEqual(firstPlace("shop://rules"), [12, 12]);
});

test("each block that was read is an attachment", () => {
  const blocks = [{ type: "resource", uri: "shop://a/7/", text: "x" }, { type: "image", mediaType: "image/gif", data: "" }] as PromptBlock[];
  const found = attached("shop", "shop://a/7/", blocks);
  assert.deepEqual(found.map(({ label, title }) => [label, title]), [["7", "shop:shop://a/7/"], ["7", "shop:shop://a/7/"]]);
  assert.equal(found[1]?.block, blocks[1]);
});
