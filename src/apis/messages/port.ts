import type { Port } from "../port.ts";
import type { MessageContext } from "./asked-message.ts";
import { messageForms } from "./form.ts";
import { messageId } from "./ids.ts";
import { messageRequestInSteps } from "./read-request.ts";
import { writeMessageResponse } from "./response-writer.ts";
import { MessageStreamWriter } from "./stream-writer.ts";
import { anthropicVoice } from "./voice.ts";

/** `POST /v1/messages`. */
export const messagesPort: Port = {
  name: "messages",
  path: "/messages",
  voice: anthropicVoice,
  *readRequest(body, requestId, options) {
    const { request, asked, warnings } = yield* messageRequestInSteps(body, requestId, options);
    return {
      request,
      warnings,
      streamWriter: (context) => new MessageStreamWriter({ ...context, asked, id: idOf(context) }),
      writeResponse: (generation, context) =>
        writeMessageResponse(generation, { ...context, asked, id: idOf(context) }),
    };
  },
  tokenCounter: {
    path: "/messages/count_tokens",
    *readRequest(body, requestId, options) {
      return (yield* messageRequestInSteps(body, requestId, { ...options, countsTokens: true })).request;
    },
    write: (tokens) => JSON.stringify({ input_tokens: tokens }),
  },
  probePath: "/api/hello",
  streamHeaders: ({ name }) => messageForms[name].streamHeaders,
};

function idOf({ created, random }: Pick<MessageContext, "created" | "random">): string {
  return messageId(created, random);
}
