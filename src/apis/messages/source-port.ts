import { isObject } from "../../core/json.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { RequestBody, ServerProfile } from "../server-profile.ts";
import type { SourcePort } from "../source-port.ts";
import { MessageReader } from "./answer-reader.ts";
import { writeMessageRequest } from "./write-request.ts";

/** A server's `messages`. */
export const messagesSource: SourcePort = {
  name: "messages",
  singleChoice: true,
  path: "/messages",
  answerLimit: { members: ["max_tokens"], none: "required" },
  modelsPath: "/models?limit=1000",
  headers: (key) => ({ ...(key !== undefined && { "x-api-key": key }), "anthropic-version": "2023-06-01" }),
  writeRequest: writeMessageRequest,
  tokenCount: {
    path: "/messages/count_tokens",
    writeRequest: countRequest,
    read: (answer) => {
      const tokens = isObject(answer) ? answer["input_tokens"] : undefined;
      return typeof tokens === "number" ? tokens : undefined;
    },
  },
  reader: (options) => new MessageReader(options),
};

/** What of a request the counting of its tokens takes; Anthropic refuses the rest. */
const counted = ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"];

function countRequest(request: GenerationRequest, profile: ServerProfile): RequestBody {
  const body = writeMessageRequest({ ...request, stream: false }, profile);
  // A client of this API has asked for a count, and knows what to ask.
  const asked = request.passthrough?.dialect === "messages" ? Object.keys(body) : counted;
  const { max_tokens: _, ...members } = body;
  return Object.fromEntries(asked.flatMap((name) => (name in members ? [[name, members[name]]] : [])));
}
