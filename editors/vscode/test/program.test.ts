import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { Backoff } from "../src/client/backoff";
import { findProgram, otherArguments, serveArguments } from "../src/client/program";

const name = process.platform === "win32" ? "kode-sidecar.exe" : "kode-sidecar";
const around = { setting: [], extensionFolder: "/x", windows: process.platform === "win32", path: ["relative", "/here", "/there"].join(process.platform === "win32" ? ";" : ":") };

test("the setting wins, then what came along, then the search path", () => {
  const everywhere = { ...around, isFile: () => true };
  assert.deepEqual(findProgram({ ...everywhere, setting: ["py", "-m", "kode_sidecar"] }), { command: "py", args: ["-m", "kode_sidecar"], source: "setting" });
  assert.equal(findProgram(everywhere)?.command, join("/x", "server", name));
  const onPath = { ...around, isFile: (path: string) => path === join("/there", name) };
  assert.deepEqual(findProgram(onPath), { command: join("/there", name), args: [], source: "path" });
  assert.equal(findProgram({ ...around, isFile: () => false }), undefined);
});

test("a relative entry of the search path is not looked into", () => {
  assert.equal(findProgram({ ...around, isFile: (path) => path === join("relative", name) }), undefined);
});

test("serve is added unless it is there, and replaced by another command", () => {
  assert.deepEqual(serveArguments([]), ["serve"]);
  assert.deepEqual(serveArguments(["serve", "--record", "f"]), ["serve", "--record", "f"]);
  assert.deepEqual(otherArguments(["-m", "kode_sidecar", "serve", "--record", "f"], "demo"), ["-m", "kode_sidecar", "demo"]);
  assert.deepEqual(otherArguments([], "demo"), ["demo"]);
});

test("every death that comes soon doubles the pause, a long life resets it", () => {
  const backoff = new Backoff();
  assert.deepEqual([1, 2, 3].map(() => backoff.afterDeath(100)), [500, 1000, 2000]);
  for (let i = 0; i < 20; i++) backoff.afterDeath(0);
  assert.equal(backoff.afterDeath(0), 30_000);
  assert.equal(backoff.afterDeath(61_000), 500);
});
