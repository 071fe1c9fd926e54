import { answerId, ownId } from "../ids.ts";
import { bearer, openaiErrorFormat } from "../api-error-format.ts";
import type { AnswerContext, Port } from "../port.ts";
import { chatForms } from "./form.ts";
import { chatRequestInSteps } from "./request.ts";
import { writeChatResponse } from "./write-body.ts";
import { ChatStreamWriter } from "./write-stream.ts";
import type { SourcePort } from "../source-port.ts";
import { chatReader } from "./read.ts";
import { writeChatRequest } from "./send.ts";

/** `POST /v1/chat/completions`. */
export const chatPort: Port = {
  name: "chat",
  path: "/chat/completions",
  errorFormat: openaiErrorFormat,
  findsModelFirst: true,
  *readRequest(body, requestId, options) {
    const { request, requested: asked, warnings } = yield* chatRequestInSteps(body, requestId, options);
    const idOf = ({ created, random, onId }: AnswerContext): string => {
      const id = answerId("chatcmpl-", created, random);
      onId?.(id);
      return id;
    };
    return {
      request,
      warnings,
      streamWriter: (context) => new ChatStreamWriter(Object.assign({ requested: asked, id: idOf(context) }, context)),
      writeResponse: (generation, context) =>
        writeChatResponse(
          generation,
          // Not a spread: V8 gives each object with a spread and further members a hidden class of its own.
          Object.assign({ requested: asked, id: ownId("chatcmpl-", generation.source?.id) ?? idOf(context) }, context),
        ),
    };
  },
  streamHeaders: ({ name }) => chatForms[name].streamHeaders,
};

/** A server's `chat/completions`. */
export const chatSource: SourcePort = {
  name: "chat",
  path: "/chat/completions",
  answerLimit: { members: ["max_tokens", "max_completion_tokens"], none: "absent" },
  headers: bearer,
  writeRequest: writeChatRequest,
  reader: chatReader,
};
