import { answerId, ownId } from "../ids.ts";
import { bearer, openaiErrorFormat } from "../api-error-format.ts";
import type { Port } from "../port.ts";
import { completionForms } from "./form.ts";
import { completionRequestInSteps } from "./request.ts";
import { writeCompletionResponse } from "./write-body.ts";
import { CompletionStreamWriter } from "./write-stream.ts";
import type { SourcePort } from "../source-port.ts";
import { completionReader } from "./read.ts";
import { writeCompletionsRequest } from "./send.ts";

/** `POST /v1/completions`, the legacy API. */
export const completionsPort: Port = {
  name: "completions",
  path: "/completions",
  errorFormat: openaiErrorFormat,
  findsModelFirst: true,
  operation: "text_completion",
  *readRequest(body, requestId, options) {
    const { request, requested: asked, warnings } = yield* completionRequestInSteps(body, requestId, options);
    const idOf = (created: number, random: () => number): string => answerId("cmpl-", created, random);
    return {
      request,
      warnings,
      streamWriter: (context) =>
        new CompletionStreamWriter({ ...context, requested: asked, id: idOf(context.created, context.random) }),
      writeResponse: (generation, context) =>
        writeCompletionResponse(generation, {
          ...context,
          requested: asked,
          id: ownId("cmpl-", generation.source?.id) ?? idOf(context.created, context.random),
        }),
    };
  },
  streamHeaders: ({ name }) => completionForms[name].streamHeaders,
};

/** A server's legacy `completions`. */
export const completionsSource: SourcePort = {
  name: "completions",
  path: "/completions",
  // Without the member, servers stop after 16 tokens. With null, vLLM stops at the end of the context.
  answerLimit: { members: ["max_tokens"], none: "null" },
  headers: bearer,
  writeRequest: writeCompletionsRequest,
  reader: completionReader,
};
