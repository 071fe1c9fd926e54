import { answerId } from "../ids.ts";
import { openaiErrorFormat } from "../voice.ts";
import type { Port } from "../port.ts";
import { chatForms } from "./form.ts";
import { chatRequestInSteps } from "./read-request.ts";
import { writeChatResponse } from "./response-writer.ts";
import { ChatStreamWriter } from "./stream-writer.ts";

/** `POST /v1/chat/completions`. */
export const chatPort: Port = {
  name: "chat",
  path: "/chat/completions",
  errorFormat: openaiErrorFormat,
  *readRequest(body, requestId, options) {
    const { request, requested: asked, warnings } = yield* chatRequestInSteps(body, requestId, options);
    const idOf = (created: number, random: () => number): string => answerId("chatcmpl-", created, random);
    return {
      request,
      warnings,
      streamWriter: (context) =>
        new ChatStreamWriter({ ...context, requested: asked, id: idOf(context.created, context.random) }),
      writeResponse: (generation, context) =>
        writeChatResponse(generation, { ...context, requested: asked, id: idOf(context.created, context.random) }),
    };
  },
  streamHeaders: ({ name }) => chatForms[name].streamHeaders,
};
