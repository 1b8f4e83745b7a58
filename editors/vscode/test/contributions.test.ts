// package.json, its translations and the source must say the same.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const json = (path: string): any => JSON.parse(readFileSync(path, "utf8"));
const source = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(join("src", name), "utf8"))
  .join("\n");
const manifest = json("package.json");

test("every text of package.json is there in both languages, and none too many", () => {
  const used = new Set([...readFileSync("package.json", "utf8").matchAll(/%([\w.]+)%/g)].map(([, key]) => key));
  for (const file of ["package.nls.json", "package.nls.zh-cn.json"]) assert.deepEqual(new Set(Object.keys(json(file))), used, file);
});

test("every text of the source is there in Chinese, with its places, and none too many", () => {
  const used = new Set([...source.matchAll(/\bt\(\s*"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => JSON.parse(`"${text}"`) as string));
  const chinese: Record<string, string> = json("l10n/bundle.l10n.zh-cn.json");
  assert.deepEqual(Object.keys(chinese).sort(), [...used].sort());
  const places = (text: string): string[] => [...text.matchAll(/\{\d\}/g)].map(([place]) => place).sort();
  for (const [text, translated] of Object.entries(chinese)) assert.deepEqual(places(translated), places(text), text);
});

test("commands of menus are declared, and what is declared is registered", () => {
  const declared: string[] = manifest.contributes.commands.map(({ command }: { command: string }) => command);
  const inMenus: string[] = Object.values<{ command: string }[]>(manifest.contributes.menus).flat().map(({ command }) => command).filter(Boolean);
  assert.deepEqual(inMenus.filter((command) => !declared.includes(command)), []);
  const registered = (command: string): boolean => new RegExp(`\\b${command.slice("kode.".length)}[:,]| ${command.slice("kode.".length)} =`).test(source);
  assert.deepEqual(declared.filter((command) => !registered(command)), []);
});

test("an untrusted folder cannot name the program, and there is no way out but the sidecar", () => {
  assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, ["kode.command"]);
  assert.equal(manifest.capabilities.virtualWorkspaces.supported, false);
  assert.deepEqual(manifest.extensionKind, ["workspace"]);
  assert.doesNotMatch(source, /\bfetch\(|https?\.request|XMLHttpRequest|WebSocket|shell: true/);
});
