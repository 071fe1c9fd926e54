import { bearer } from "../voice.ts";
import type { SourcePort } from "../source-port.ts";
import { ChatStreamReader } from "./stream-reader.ts";
import { writeChatRequest } from "./write-request.ts";

/** A server's `chat/completions`. */
export const chatSource: SourcePort = {
  name: "chat",
  path: "/chat/completions",
  answerLimit: { members: ["max_tokens", "max_completion_tokens"], none: "absent" },
  headers: bearer,
  writeRequest: writeChatRequest,
  reader: (options) => new ChatStreamReader(options),
};
