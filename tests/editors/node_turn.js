// One turn in a client of Microsoft's own parts: vscode-jsonrpc carries the messages,
// vscode-languageserver-textdocument applies the edits.
// The scene and the result are described in tests/support/foreign.py.
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const {
  ApplyWorkspaceEditRequest,
  createProtocolConnection,
  DidChangeTextDocumentNotification,
  DidOpenTextDocumentNotification,
  ExitNotification,
  InitializedNotification,
  InitializeRequest,
  ShutdownRequest,
} = require("vscode-languageserver-protocol/node");
const { TextDocument } = require("vscode-languageserver-textdocument");

const scene = JSON.parse(fs.readFileSync(process.env.EDITOR_SCENE, "utf8"));

/** What the stream tells. */
class Fold {
  lastSeq = 0;
  roles = new Map();
  blocks = new Map();
  texts = [];
  changeSets = new Set();
  over = new Promise((resolve) => (this.end = resolve));

  event(event) {
    this.lastSeq = event.seq ?? this.lastSeq;
    switch (event.type) {
      case "message.added":
        this.roles.set(event.messageId, event.role);
        break;
      case "block.started": {
        const block = { grown: "" };
        this.blocks.set(event.blockId, block);
        if (event.block.type === "text" && this.roles.get(event.messageId) === "assistant")
          this.texts.push(block);
        break;
      }
      case "block.completed":
        this.blocks.get(event.blockId).completed = event.block.text;
        break;
      case "changeSet.updated":
        this.changeSets.add(event.changeSetId);
        break;
      case "turn.completed":
        this.end(event.stopReason);
    }
  }

  delta({ blockId, at, add }) {
    const block = this.blocks.get(blockId);
    if ([...block.grown].length !== at) throw new Error("a delta is missing or told twice");
    block.grown += add;
  }
}

/** An open document; every change is told with the range it replaces. */
class Buffer {
  edits = 0;

  constructor(connection, text) {
    this.connection = connection;
    this.document = TextDocument.create(scene.uri, "javascript", 1, text);
  }

  open() {
    const { uri, languageId, version } = this.document;
    const textDocument = { uri, languageId, version, text: this.document.getText() };
    return this.connection.sendNotification(DidOpenTextDocumentNotification.type, { textDocument });
  }

  async apply(edits) {
    const wanted = TextDocument.applyEdits(this.document, edits);
    // From the end to the start, so that each range holds when its turn comes.
    const offset = (edit) => this.document.offsetAt(edit.range.start);
    const ordered = edits.map((edit, k) => ({ edit, k, at: offset(edit) }));
    ordered.sort((a, b) => b.at - a.at || b.k - a.k);
    const contentChanges = ordered.map(({ edit }) => ({ range: edit.range, text: edit.newText }));
    const version = this.document.version + 1;
    TextDocument.update(this.document, contentChanges, version);
    if (this.document.getText() !== wanted) throw new Error("the edits overlap");
    const textDocument = { uri: scene.uri, version };
    const params = { textDocument, contentChanges };
    await this.connection.sendNotification(DidChangeTextDocumentNotification.type, params);
  }

  /** `workspace/applyEdit`, versioned or as plain `changes`. */
  async applyWorkspaceEdit({ edit }) {
    this.edits += 1;
    const [change] = edit.documentChanges ?? [];
    if (!change) {
      await this.apply(edit.changes[scene.uri]);
      return { applied: true };
    }
    if (change.textDocument.version !== this.document.version) return { applied: false };
    await this.apply(change.edits);
    return { applied: true };
  }
}

async function handshake(connection) {
  await connection.sendRequest(InitializeRequest.type, {
    processId: process.pid,
    rootUri: scene.rootUri,
    capabilities: {
      workspace: { applyEdit: true, workspaceEdit: { documentChanges: scene.kode !== null } },
    },
    ...(scene.kode && { initializationOptions: { kode: scene.kode } }),
  });
  await connection.sendNotification(InitializedNotification.type, {});
}

async function turn(connection, fold) {
  const ends = scene.finalNewline ? "\r\n" : "";
  const buffer = new Buffer(connection, scene.lines.join("\r\n") + ends);
  connection.onRequest(ApplyWorkspaceEditRequest.type, (params) =>
    buffer.applyWorkspaceEdit(params),
  );
  await buffer.open();
  const { sessionId } = await connection.sendRequest("kode/session/new", {});
  const input = [{ type: "text", text: scene.prompt }];
  await connection.sendRequest("kode/turn/start", { sessionId, input });
  const stopReason = await fold.over;
  const top = { line: 0, character: 0 };
  await buffer.apply([{ range: { start: top, end: top }, newText: scene.typed + "\r\n" }]);
  const [changeSetId, ...others] = fold.changeSets;
  if (others.length > 0) throw new Error("more than one change set");
  const params = { changeSetId, rest: "accept", seenSeq: fold.lastSeq };
  const decided = await connection.sendRequest("kode/changeSet/decide", params);
  return {
    texts: fold.texts.map((block) => block.grown),
    completed: fold.texts.map((block) => block.completed),
    stopReason,
    decided,
    edits: buffer.edits,
    buffer: buffer.document.getText(),
  };
}

async function main() {
  const [program, ...options] = scene.command;
  const sidecar = spawn(program, options, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => sidecar.on("exit", resolve));
  const connection = createProtocolConnection(sidecar.stdout, sidecar.stdin, console);
  const fold = new Fold();
  connection.onNotification("kode/event", ({ events }) => events.forEach((e) => fold.event(e)));
  connection.onNotification("kode/delta", ({ deltas }) => deltas.forEach((d) => fold.delta(d)));
  connection.listen();
  await handshake(connection);
  const result = await turn(connection, fold);
  await connection.sendRequest(ShutdownRequest.type);
  await connection.sendNotification(ExitNotification.type);
  const code = await ended;
  if (code !== 0) throw new Error(`the sidecar ended with ${code}`);
  fs.writeFileSync(scene.result, JSON.stringify(result));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
