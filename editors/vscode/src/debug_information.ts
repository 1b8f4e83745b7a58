// What a bug report needs, as Markdown. The sidecar's doctor masks secrets itself.
import * as vscode from "vscode";
import type { DoctorResult } from "../../../protocol/kode";
import { errorInfo } from "./client/errors";
import type { Sidecar } from "./client/sidecar";
import type { Sessions } from "./session/sessions";

type Sources = { extension: vscode.ExtensionContext; sidecar: Sidecar; sessions: Sessions };

export async function debugInformation({ extension, sidecar, sessions }: Sources): Promise<string> {
  const memory = process.memoryUsage();
  const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`;
  const program = sidecar.program();
  const lines = [
    "## kode for VS Code",
    `- extension ${(extension.extension.packageJSON as { version: string }).version}, ${vscode.env.appName} ${vscode.version}, ${process.platform} ${process.arch}, Node ${process.versions.node}`,
    `- trusted: ${vscode.workspace.isTrusted}, remote: ${vscode.env.remoteName ?? "no"}, language: ${vscode.env.language}`,
    `- program: ${program ? `${program.source}, ${[program.command, ...program.args].join(" ")}` : "not found"}; status ${sidecar.status} ${sidecar.problem}`,
    `- extension host: heap ${megabytes(memory.heapUsed)}, resident ${megabytes(memory.rss)}; ${sessions.all().length} sessions open`,
  ];
  try {
    lines.push(...doctorLines(await sidecar.request("kode/doctor", {})));
  } catch (error) {
    lines.push(`- doctor: ${errorInfo(error).message}`);
  }
  return lines.join("\n");
}

function doctorLines({ version, protocolVersion, python, platform, settings, checks, lastErrors }: DoctorResult): string[] {
  return [
    `- sidecar ${version}, protocol ${protocolVersion}, Python ${python}, ${platform}`,
    ...checks.filter(({ ok }) => !ok).map(({ name, message, hint }) => `- ${name}: ${message} ${hint ?? ""}`),
    ...settings.filter(({ source }) => source !== "default").map(({ name, value, source }) => `- ${name} = ${JSON.stringify(value)} (${source})`),
    ...lastErrors.map(({ code, message }) => `- last error ${code}: ${message}`),
  ];
}
