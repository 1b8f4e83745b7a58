// Bundles the extension and its chat view into `dist`: node scripts/build.mjs [--dev]
import { build } from "esbuild";

const dev = process.argv.includes("--dev");
const common = { bundle: true, minify: !dev, sourcemap: dev, logLevel: "warning", legalComments: "none" };

await Promise.all([
  build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  }),
  build({
    ...common,
    entryPoints: ["src/webview/main.ts", "src/webview/style.css"],
    outdir: "dist/webview",
    platform: "browser",
    format: "iife",
    target: "chrome122",
  }),
]);
