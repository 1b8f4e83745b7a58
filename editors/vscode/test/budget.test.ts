import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBudget, shownBudget } from "../src/session/budget";

test("an amount and a currency make a budget of the session", () => {
  assert.deepEqual(parseBudget(" 5 cny "), { currency: "CNY", session: 5 });
  assert.deepEqual(parseBudget("0.25USD"), { currency: "USD", session: 0.25 });
  assert.equal(shownBudget(parseBudget("1.5 EUR")), "1.5 EUR");
});

test("anything else is none", () => {
  for (const said of ["", "5", "CNY", "0 CNY", "-1 CNY", "5 YUAN", "5,5 EUR", "1e9 USD"]) assert.equal(parseBudget(said), undefined, said);
  assert.equal(shownBudget(undefined), "");
});
