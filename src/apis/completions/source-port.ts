import { bearer } from "../voice.ts";
import type { SourcePort } from "../source-port.ts";
import { CompletionsStreamReader } from "./stream-reader.ts";
import { writeCompletionsRequest } from "./write-request.ts";

/** A server's legacy `completions`. */
export const completionsSource: SourcePort = {
  name: "completions",
  path: "/completions",
  // Without the member, servers stop after 16 tokens. With null, vLLM stops at the end of the context.
  answerLimit: { members: ["max_tokens"], none: "null" },
  headers: bearer,
  writeRequest: writeCompletionsRequest,
  reader: (options) => new CompletionsStreamReader(options),
};
