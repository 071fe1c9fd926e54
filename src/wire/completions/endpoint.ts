import type { Endpoint } from "../endpoint.ts";
import { readCompletionRequest } from "./read-request.ts";
import { writeCompletionResponse } from "./response-writer.ts";
import { CompletionStreamWriter } from "./stream-writer.ts";

/** `POST /v1/completions`, the legacy endpoint. */
export const completionsEndpoint: Endpoint = {
  name: "completions",
  readRequest: readCompletionRequest,
  streamWriter: (context) => new CompletionStreamWriter(context),
  writeResponse: writeCompletionResponse,
};
