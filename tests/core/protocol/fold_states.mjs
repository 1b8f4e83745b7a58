// node fold_states.mjs TYPESCRIPT FOLD.ts GOLDEN...: what the fold makes of each session in each way.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [typescript, source, ...golden] = process.argv.slice(2);
const ts = createRequire(import.meta.url)(typescript);
const compiled = join(mkdtempSync(join(tmpdir(), "kode-fold-")), "fold.mjs");
const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
writeFileSync(compiled, ts.transpileModule(readFileSync(source, "utf8"), { compilerOptions: options }).outputText);
const { Fold } = await import(pathToFileURL(compiled));

function play(fold, items) {
  for (const item of items) {
    for (const event of item.events ?? []) fold.event(event);
    for (const delta of item.deltas ?? []) fold.delta(delta);
  }
  return fold;
}

function taken(...answers) {
  const fold = new Fold();
  for (const answer of answers) fold.attach(answer);
  return fold;
}

function state(fold) {
  const all = (map, change = (value) => value) => Object.fromEntries([...map].map(([id, value]) => [id, change(value)]));
  const { seq, headId, turnId, lastTurn, usage, plan, findings } = fold;
  return {
    seq, headId, turnId, usage, plan, findings, stopReason: lastTurn?.stopReason,
    messages: all(fold.messages),
    blocks: all(fold.blocks, ({ messageId, block }) => ({ ...block, messageId })),
    results: all(fold.results),
    changeSets: all(fold.changeSets),
    hunks: all(fold.hunks, ({ range: _, ...hunk }) => hunk),
  };
}

const states = golden.map((name) => {
  const told = JSON.parse(readFileSync(name, "utf8"));
  const listed = new Fold();
  for (const page of told.pages) listed.page(page);
  const prefix = new Fold();
  for (const event of told.stream.flatMap(({ events = [] }) => events)) if ((event.seq ?? 0) <= 9) prefix.event(event);
  prefix.attach(told.replay);
  return {
    stream: state(play(new Fold(), told.stream)),
    middle: state(play(taken(told.middle), told.stream.slice(told.after))),
    snapshot: state(taken(told.snapshot)),
    replay: state(prefix),
    list: state(listed),
  };
});
process.stdout.write(JSON.stringify(states));
