import { bearer } from "../openai-voice.ts";
import type { SourcePort } from "../source-port.ts";
import { CompletionsStreamReader } from "./stream-reader.ts";
import { writeCompletionsRequest } from "./write-request.ts";

/** A server's legacy `completions`. */
export const completionsSource: SourcePort = {
  name: "completions",
  path: "/completions",
  // Without the member, servers stop after 16 tokens. With null, vLLM stops where the context ends.
  answerLimit: { members: ["max_tokens"], none: "null" },
  headers: bearer,
  writeRequest: writeCompletionsRequest,
  reader: (options) => new CompletionsStreamReader(options),
};
