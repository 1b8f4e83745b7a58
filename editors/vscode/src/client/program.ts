// Finds the sidecar: the user's setting, the build that came with the extension, the search path.
import { existsSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

export type Found = { command: string; args: string[]; source: "setting" | "bundled" | "path" };

export type Surroundings = {
  setting: readonly string[];
  extensionFolder: string;
  path: string | undefined;
  windows: boolean;
  isFile?: (path: string) => boolean;
};

/** The program as an argument list, or undefined where there is none. Never for a shell. */
export function findProgram(around: Surroundings): Found | undefined {
  const { setting, extensionFolder, path = "", windows, isFile = isRegularFile } = around;
  const name = windows ? "kode-sidecar.exe" : "kode-sidecar";
  const [command, ...args] = setting;
  if (command) return { command, args, source: "setting" };
  const bundled = join(extensionFolder, "server", name);
  if (isFile(bundled)) return { command: bundled, args: [], source: "bundled" };
  for (const folder of path.split(windows ? ";" : delimiter)) {
    // A relative entry of the search path would let an opened folder bring its own program.
    if (isAbsolute(folder) && isFile(join(folder, name))) return { command: join(folder, name), args: [], source: "path" };
  }
  return undefined;
}

/** `serve` is added unless the setting names it, as with `serve --record FILE`. */
export function serveArguments(args: readonly string[]): string[] {
  return args.includes("serve") ? [...args] : [...args, "serve"];
}

/** The arguments for another command of the same program. */
export function otherArguments(args: readonly string[], ...command: string[]): string[] {
  const serve = args.indexOf("serve");
  return [...(serve < 0 ? args : args.slice(0, serve)), ...command];
}

function isRegularFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
