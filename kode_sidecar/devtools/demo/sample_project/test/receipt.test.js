import assert from "node:assert/strict";
import test from "node:test";

import { total } from "../src/receipt.js";

test("one of each", () => {
  assert.equal(total([{ name: "龙井", count: 1 }, { name: "普洱", count: 1 }]), 80);
});
