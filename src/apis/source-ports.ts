import { chatSource } from "./chat/port.ts";
import { messagesSource } from "./messages/send.ts";
import { responsesSource } from "./responses/send.ts";
import type { SourceApi, SourcePort } from "./source-port.ts";

/** The APIs of upstreams for conversations. */
export const sourcePorts: Readonly<Record<SourceApi, SourcePort>> = {
  chat: chatSource,
  responses: responsesSource,
  messages: messagesSource,
};
