// What the extension and its chat view say to each other.
import type { AskParams, BlockDelta, Event, Message, PermissionRequestParams, PromptBlock, SessionAttachResult } from "../../../../protocol/kode";

/** Something that goes with a prompt; `label` is its chip. */
export type Attachment = { label: string; title: string; block: PromptBlock };

/** What the sidecar asks the user: a permission has options, a choice of the model has choices. */
export type Question = PermissionRequestParams | AskParams;

export type ChatState = {
  status: "stopped" | "starting" | "ready" | "waiting" | "missing";
  problem: string;
  sessionId: string | undefined;
  running: boolean;
  readOnly: boolean;
  demo: boolean;
  mode: string;
  model: string;
  /** Such as `12 % · ¥0.03`. */
  meter: string;
  meterTitle: string;
  queue: string[];
  failure: { message: string; code: string } | undefined;
  /** Hunks that wait, the files they are in, and whether all are applied already, to be kept or undone. */
  waiting: { hunks: number; files: number; applied: boolean };
};

export type ToView =
  | { type: "start"; strings: Record<string, string>; language: string }
  | { type: "snapshot"; told: SessionAttachResult | undefined }
  | { type: "page"; messages: Message[] }
  | { type: "stream"; items: (Event | BlockDelta)[] }
  | { type: "state"; state: ChatState }
  | { type: "questions"; questions: Question[] }
  | { type: "attach"; attachment: Attachment }
  | { type: "giveBack"; text: string; attachments: readonly Attachment[] }
  | { type: "focus"; question?: boolean };

export type FromView =
  | { type: "ready" }
  | { type: "send"; text: string; attachments: Attachment[]; steer?: boolean; parentId?: string | null }
  | { type: "cancel" }
  | { type: "answer"; requestId: string; chosen: string[]; words?: string }
  | { type: "unqueue"; index: number }
  | { type: "fork"; messageId: string }
  | { type: "setHead"; messageId: string }
  | { type: "open"; uri: string; line?: number }
  | { type: "openPlace"; path: string; line: number }
  | { type: "insert"; text: string }
  | { type: "blob"; ref: string; title: string }
  | { type: "link"; href: string }
  | { type: "pickAttachment" }
  | { type: "command"; command: string; argument?: string };
