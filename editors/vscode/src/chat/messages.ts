// What the extension and its chat view say to each other.
import type { BlockDelta, Event, Message, PromptBlock, SessionAttachResult } from "../../../../protocol/kode";

/** Something that goes with a prompt; `label` is its chip. */
export type Attachment = { label: string; title: string; block: PromptBlock };

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
  /** Proposed hunks that wait, and the files they are in. */
  waiting: { hunks: number; files: number };
};

export type ToView =
  | { type: "start"; strings: Record<string, string>; language: string }
  | { type: "snapshot"; told: SessionAttachResult | undefined }
  | { type: "page"; messages: Message[] }
  | { type: "stream"; items: (Event | BlockDelta)[] }
  | { type: "state"; state: ChatState }
  | { type: "attach"; attachment: Attachment }
  | { type: "prefill"; text: string }
  | { type: "focus" };

export type FromView =
  | { type: "ready" }
  | { type: "send"; text: string; attachments: Attachment[]; steer?: boolean; parentId?: string | null }
  | { type: "cancel" }
  | { type: "unqueue"; index: number }
  | { type: "fork"; messageId: string }
  | { type: "setHead"; messageId: string }
  | { type: "open"; uri: string; line?: number }
  | { type: "blob"; ref: string; title: string }
  | { type: "link"; href: string }
  | { type: "pickAttachment" }
  | { type: "command"; command: string; argument?: string };
