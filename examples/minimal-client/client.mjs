// The smallest client that is still an editor: node client.mjs PROJECT SIDECAR [ARGUMENT...]
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const rpc = createRequire(import.meta.url)("vscode-jsonrpc/node");
const project = resolve(process.argv[2]);
const file = join(project, "src", "receipt.js");
const uri = pathToFileURL(file).href;
let version = 1;
let text = "// 未保存 🍵 unsaved\r\n" + readFileSync(file, "utf8");

const [command, ...args] = process.argv.slice(3);
const sidecar = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((done) => sidecar.on("exit", done));
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(sidecar.stdout),
  new rpc.StreamMessageWriter(sidecar.stdin),
);

const kinds = new Map(); // block id -> its type
let seq = 0;
let turnIsOver, decided;
const turnEnd = new Promise((done) => (turnIsOver = done));

connection.onNotification("kode/event", ({ events }) => {
  for (const event of events) {
    seq = event.seq ?? seq;
    if (event.type === "block.started") kinds.set(event.blockId, event.block.type);
    // Now, for in mode `ask` the turn waits for it.
    if (event.type === "changeSet.updated" && event.state !== "decided") decided = accept(event.changeSetId);
    if (event.type === "turn.completed") turnIsOver(event);
  }
});

connection.onNotification("kode/delta", ({ deltas }) => {
  for (const { blockId, add } of deltas)
    if (kinds.get(blockId) === "text") process.stdout.write(add);
});

connection.onRequest("workspace/applyEdit", ({ edit }) => {
  const [{ textDocument, edits }] = edit.documentChanges;
  if (textDocument.uri !== uri || textDocument.version !== version) return { applied: false };
  const starts = [0, ...[...text.matchAll(/\r\n|\n|\r/g)].map((end) => end.index + end[0].length)];
  const offset = ({ line, character }) => starts[line] + character; // both count UTF-16 units
  for (const { range, newText } of edits.toReversed()) // they are in the order of the text
    text = text.slice(0, offset(range.start)) + newText + text.slice(offset(range.end));
  version += 1;
  connection.sendNotification("textDocument/didChange", {
    textDocument: { uri, version },
    contentChanges: [{ text }],
  });
  return { applied: true };
});

connection.listen();
const ask = (method, params) => connection.sendRequest(method, params);
const accept = (changeSetId) => ask("kode/changeSet/decide", { changeSetId, rest: "accept", seenSeq: seq });
await ask("initialize", {
  processId: process.pid,
  rootUri: pathToFileURL(project).href,
  capabilities: { workspace: { applyEdit: true, workspaceEdit: { documentChanges: true } } },
  initializationOptions: { kode: { protocolVersions: ["1.0"], client: { name: "minimal" } } },
});
connection.sendNotification("initialized", {});
const textDocument = { uri, languageId: "javascript", version, text };
connection.sendNotification("textDocument/didOpen", { textDocument });
const { sessionId } = await ask("kode/session/new", {});
const prompt = "The total of the receipt is wrong. Please mend it.";
await ask("kode/turn/start", { sessionId, input: [{ type: "text", text: prompt }] });
const { error } = await turnEnd;
await decided;
console.log("\n\n" + text.replaceAll("\r\n", "\n"));
await ask("shutdown");
connection.sendNotification("exit");
if (error) console.error(error.message); // it is for the user
process.exitCode = (await exited) || (error ? 1 : 0);
