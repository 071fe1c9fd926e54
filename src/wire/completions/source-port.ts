import type { SourcePort } from "../source-port.ts";
import { CompletionsStreamReader } from "./stream-reader.ts";
import { writeCompletionsRequest } from "./write-request.ts";

/** A server's legacy `completions`. */
export const completionsSource: SourcePort = {
  name: "completions",
  path: "/completions",
  writeRequest: writeCompletionsRequest,
  reader: (options) => new CompletionsStreamReader(options),
};
