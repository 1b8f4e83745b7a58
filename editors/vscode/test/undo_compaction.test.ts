import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { registerCommands, type Rooms } from "../src/commands";
import { commands, told } from "./vscode";

type Asked = { method: string; params: unknown };

/** Calls the command as the palette does; `answer` is what the sidecar says. */
async function undo(shown: { id: string } | undefined, answer: () => unknown): Promise<Asked[]> {
  const asked: Asked[] = [];
  const request = async (method: string, params: unknown): Promise<unknown> => {
    asked.push({ method, params });
    return answer();
  };
  const quiet = { debug: () => undefined, warn: () => undefined };
  const registered = registerCommands({ sidecar: { request }, sessions: { shown }, log: quiet } as unknown as Rooms);
  await commands.executeCommand("kode.undoCompaction");
  registered.forEach((one) => one.dispose());
  return asked;
}

beforeEach(() => told.splice(0));

test("the newest summary of the session on show is taken back, and the user is told what that costs", async () => {
  const asked = await undo({ id: "s1" }, () => ({ tokensBefore: 900, tokensAfter: 9_000, rereadTokens: 8_100 }));
  assert.deepEqual(asked, [{ method: "kode/context/undoCompaction", params: { sessionId: "s1" } }]);
  assert.deepEqual(told, ["info: The next request has 9000 tokens instead of 900; 8100 are read anew."]);
});

test("where there is no summary the sidecar's own words say so", async () => {
  await undo({ id: "s1" }, () => {
    throw new Error("There is no summary to take back.");
  });
  assert.deepEqual(told, ["error: There is no summary to take back."]);
});

test("without a session on show nothing is asked", async () => {
  assert.deepEqual(await undo(undefined, () => undefined), []);
  assert.deepEqual(told, []);
});
