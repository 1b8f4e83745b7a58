// What answers the requests that the sidecar sends to the editor, by their methods.
import type * as vscode from "vscode";
import type { KodeServerRequests } from "../../../../protocol/kode";

type Answerer<M extends keyof KodeServerRequests> = (
  params: KodeServerRequests[M][0],
  cancelled: vscode.CancellationToken,
) => Promise<KodeServerRequests[M][1]>;
export type Answers = { [M in keyof KodeServerRequests]: Answerer<M> };
