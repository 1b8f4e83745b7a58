// The npm SDK's own client: drives every method of the agent and prints what came of each.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [, , sdk, schema, ajvPath, project, ...command] = process.argv;
const acp = await import(pathToFileURL(sdk));
const { default: Ajv } = await import(pathToFileURL(ajvPath));

const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(JSON.parse(readFileSync(schema, "utf-8")), "acp");
const definitions = JSON.parse(readFileSync(schema, "utf-8")).$defs;
const byMethod = {};
for (const [name, one] of Object.entries(definitions)) {
  if (one["x-method"]) byMethod[`${one["x-method"]} ${name.endsWith("Response")}`] = name;
}
const wrong = [];
function check(method, isResult, value) {
  const name = byMethod[`${method} ${isResult}`];
  const validate = name && ajv.getSchema(`acp#/$defs/${name}`);
  if (!validate) return wrong.push(`${method}: no schema`);
  if (!validate(value ?? {})) wrong.push(`${method}: ${ajv.errorsText(validate.errors)}`);
}

const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const methods = acp.methods;
const done = [];
const kinds = new Set();
let asked = 0;
let heard = () => {};

const app = acp
  .client({ name: "sdk" })
  .onNotification(methods.client.session.update, ({ params }) => {
    check("session/update", false, params);
    kinds.add(params.update.sessionUpdate);
    heard();
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    check("session/request_permission", false, params);
    const kind = asked++ === 0 ? "allow_once" : "reject_once";
    const option = params.options.find((one) => one.kind === kind);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  });

await app.connectWith(stream, async (ctx) => {
  const ask = async (method, params) => {
    check(method, false, params);
    const result = await ctx.request(method, params);
    check(method, true, result);
    done.push(method);
    return result;
  };
  const agent = methods.agent;
  const say = (sessionId, text) =>
    ask(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  await ask(agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: { session: { notices: {}, compaction: {} } },
    clientInfo: { name: "sdk", version: "1" },
  });
  await ask(agent.authenticate, { methodId: "settings" });
  const place = { cwd: project, mcpServers: [] };
  const { sessionId } = await ask(agent.session.new, place);
  await say(sessionId, "Change both");
  const waiting = say(sessionId, "A story");
  await new Promise((resolve) => {
    kinds.delete("agent_thought_chunk");
    heard = () => kinds.has("agent_thought_chunk") && resolve();
  });
  await ctx.notify(agent.session.cancel, { sessionId });
  done.push(agent.session.cancel, (await waiting).stopReason);
  await ask(agent.session.setMode, { sessionId, modeId: "auto" });
  await ask(agent.session.setConfigOption, { sessionId, configId: "mode", value: "ask" });
  await ask(agent.session.list, {});
  await ask(agent.session.close, { sessionId });
  await ask(agent.session.load, { sessionId, ...place });
  await ask(agent.session.close, { sessionId });
  await ask(agent.session.resume, { sessionId, ...place });
  await say(sessionId, "/rewind");
  await ask(agent.session.delete, { sessionId });
  await ask(agent.logout, {});
});
child.stdin.end();
console.log(JSON.stringify({ done, kinds: [...kinds].sort(), asked, wrong }));
process.exit(0);
