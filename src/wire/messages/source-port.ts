import type { SourcePort } from "../source-port.ts";
import { MessageReader } from "./answer-reader.ts";
import { writeMessageRequest } from "./write-request.ts";

/** A server's `messages`. */
export const messagesSource: SourcePort = {
  name: "messages",
  singleChoice: true,
  path: "/messages",
  modelsPath: "/models?limit=1000",
  headers: (key) => ({ ...(key !== undefined && { "x-api-key": key }), "anthropic-version": "2023-06-01" }),
  writeRequest: writeMessageRequest,
  reader: (options) => new MessageReader(options),
};
