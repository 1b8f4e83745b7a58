// Bundles test/*.test.ts and runs them under `node --test`; arguments go to Node.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const outdir = mkdtempSync(join(tmpdir(), "kode-vscode-test-"));
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => join("test", name)),
  outdir,
  bundle: true,
  platform: "node",
  format: "esm",
  // Not all of it is there: what no test calls.
  alias: { vscode: "./test/vscode.ts" },
  logOverride: { "import-is-undefined": "silent" },
  outExtension: { ".js": ".mjs" },
  // markdown-it is CommonJS inside
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
});
const files = tests.map((name) => join(outdir, name.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--test", ...process.argv.slice(2), ...files], { stdio: "inherit" });
rmSync(outdir, { recursive: true });
process.exitCode = status ?? 1;
