// A plugin without an editor, for its own tests: node out/plugin.mjs PROJECT SIDECAR [ARGUMENT...]
//
// It does what plugin.py does. fold.ts beside it is protocol/fold/fold.ts, kode.d.ts a folder above it
// protocol/kode.d.ts; README.md has the line that compiles them.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Fold } from "./fold.js";
import type * as kode from "../kode.js";

type Edit = { range: kode.Range; newText: string };
type Change = { textDocument?: { uri: string; version: number }; edits: Edit[] };
type Json = Record<string, any>; // of LSP, which kode.d.ts does not tell

const project = resolve(process.argv[2]!);
const uri = pathToFileURL(join(project, "notes.txt")).href;
const buffer = { version: 1, text: "未保存 🍵 unsaved\n" + readFileSync(join(project, "notes.txt"), "utf8") };
const sidecar = spawn(process.argv[3]!, process.argv.slice(4), { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise<number | null>((done) => sidecar.on("exit", done));
const fold = new Fold();
const answers = new Map<number, (answer: Json) => void>();
const screen = new Map<string, string>();
const decided = new Set<string>();
const waiting: { done: () => unknown; go: () => void }[] = [];
let number = 0;

function send(message: Json): void {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  sidecar.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
  sidecar.stdin.write(body);
}

function request<M extends keyof kode.KodeRequests>(method: M, params: kode.KodeRequests[M][0]): Promise<kode.KodeRequests[M][1]>;
function request(method: "initialize" | "shutdown", params?: Json): Promise<Json>;
function request(method: string, params?: unknown): Promise<any> {
  number += 1;
  send({ id: number, method, params });
  return new Promise((done, fail) =>
    answers.set(number, (answer) => (answer.error ? fail(new Error(answer.error.message)) : done(answer.result))),
  );
}

/** Until `done`, which is looked at after everything that is heard. */
const until = (done: () => unknown): Promise<void> =>
  new Promise((go) => (done() ? go() : void waiting.push({ done, go })));

let input = Buffer.alloc(0);
sidecar.stdout.on("data", (more: Buffer) => {
  input = Buffer.concat([input, more]);
  for (;;) {
    const head = input.indexOf("\r\n\r\n");
    if (head < 0) return;
    const end = head + 4 + Number(/content-length: *(\d+)/i.exec(input.toString("latin1", 0, head))![1]);
    if (input.length < end) return;
    const message = JSON.parse(input.toString("utf8", head + 4, end));
    input = input.subarray(end);
    hear(message);
  }
});

function hear({ id, method, params, ...answer }: Json): void {
  if (method === undefined) answers.get(id)?.(answer);
  else if (method === "kode/event") params.events.forEach((event: kode.Event) => fold.event(event));
  else if (method === "kode/delta") params.deltas.forEach((delta: kode.BlockDelta) => fold.delta(delta));
  else if (questions[method]) send({ id, result: questions[method](params) });
  else if (id !== undefined) send({ id, error: { code: -32601, message: `no ${method} here` } });
  show();
  review();
  for (const one of waiting.splice(0)) one.done() ? one.go() : waiting.push(one);
}

/** Tell what is on the screen now: texts and thoughts, not what is unknown here. */
function show(): void {
  for (const id of fold.touched) {
    const known = fold.blocks.get(id);
    if (known?.block.type === "text" || known?.block.type === "thinking") tell(id, known.text);
  }
  for (const id of [...screen.keys()].filter((id) => !fold.blocks.has(id))) {
    tell(id, ""); // dropped
    screen.delete(id);
  }
  fold.touched.clear();
}

function tell(blockId: string, text: string): void {
  screen.set(blockId, text);
  send({ method: "kode/editor/didShow", params: { blockId, text } });
}

/** Accept what waits, as a user does who reads fast; in mode `ask` the turn waits for it. */
function review(): void {
  for (const { id, hunks } of fold.changeSets.values()) {
    const fresh = hunks.filter((one) => fold.hunks.get(one)?.state === "proposed" && !decided.has(one));
    fresh.forEach((one) => decided.add(one));
    const decisions = fresh.map((hunkId) => ({ hunkId, action: "accept" as const }));
    if (fresh.length) void request("kode/changeSet/decide", { changeSetId: id, decisions, seenSeq: fold.seq });
  }
}

function applyEdit({ edit }: { edit: { documentChanges: Change[] } }): Json {
  for (const { textDocument, edits } of edit.documentChanges) {
    if (textDocument?.uri !== uri || textDocument.version !== buffer.version) return { applied: false };
    const starts = [0, ...[...buffer.text.matchAll(/\r\n|\n|\r/g)].map((end) => end.index + end[0].length)];
    const offset = ({ line, character }: kode.Position): number => starts[line]! + character; // UTF-16 both
    for (const { range, newText } of [...edits].reverse()) // they are in the order of the text
      buffer.text = buffer.text.slice(0, offset(range.start)) + newText + buffer.text.slice(offset(range.end));
    buffer.version += 1;
    const changes = { textDocument: { uri, version: buffer.version }, contentChanges: [{ text: buffer.text }] };
    send({ method: "textDocument/didChange", params: changes });
  }
  return { applied: true };
}

const questions: Record<string, (params: any) => Json> = {
  "workspace/applyEdit": applyEdit,
  "kode/permission/request": ({ options }: kode.PermissionRequestParams) => ({
    optionId: options.find(({ kind }) => kind === "allow_once")!.optionId,
  }),
  "kode/ask": ({ choices }: kode.AskParams) => ({ choices: choices.slice(0, 1) }),
};

await request("initialize", {
  processId: process.pid,
  rootUri: pathToFileURL(project).href,
  capabilities: { workspace: { applyEdit: true, workspaceEdit: { documentChanges: true } } },
  initializationOptions: {
    kode: { protocolVersions: ["1.0"], client: { name: "plugin" }, trusted: true, capabilities: { permission: {}, ask: {} } },
  },
});
send({ method: "initialized", params: {} });
send({ method: "textDocument/didOpen", params: { textDocument: { uri, languageId: "plaintext", ...buffer } } });
const { sessionId } = await request("kode/session/new", {});
const turn = (text: string): Promise<unknown> =>
  request("kode/turn/start", { sessionId, input: [{ type: "text", text }] });
await turn("Please mend the notes.");
await until(() => fold.lastTurn);
await until(() => [...fold.hunks.values()].every(({ state }) => state !== "proposed"));
await turn("Please go on.");
await until(() => [...fold.blocks.values()].some(({ open, text }) => open && text));
await request("kode/turn/cancel", { sessionId });
await until(() => fold.lastTurn);
const snapshot = new Fold();
snapshot.attach(await request("kode/session/attach", { sessionId }));
send({ method: "textDocument/didClose", params: { textDocument: { uri } } });
await request("shutdown");
send({ method: "exit" });
console.log(buffer.text);
const same = [...fold.messages.keys()].every((id) => snapshot.messages.get(id)?.complete);
if (!same) console.error("the snapshot is another conversation");
process.exitCode = (await exited) || (same ? 0 : 1);
