import type { ErrorInfo } from "../../../../protocol/kode";

/** What went wrong, as the sidecar tells it; anything else becomes an `InternalError`. */
export function errorInfo(error: unknown): ErrorInfo {
  const data = (error as { data?: Partial<ErrorInfo> } | undefined)?.data;
  const message = error instanceof Error ? error.message : String(error);
  return { code: "InternalError", category: "", retryable: false, ...data, message };
}
