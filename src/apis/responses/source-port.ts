import { bearer } from "../openai-voice.ts";
import type { SourcePort } from "../source-port.ts";
import { ResponseReader } from "./answer-reader.ts";
import { writeResponsesRequest } from "./write-request.ts";

/** A server's `responses`. */
export const responsesSource: SourcePort = {
  name: "responses",
  singleChoice: true,
  path: "/responses",
  answerLimit: { members: ["max_output_tokens"], none: "absent" },
  headers: bearer,
  writeRequest: writeResponsesRequest,
  reader: (options) => new ResponseReader(options),
};
