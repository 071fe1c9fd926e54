import { chatPort, chatSource } from "./chat/port.ts";
import { completionsPort } from "./completions/port.ts";
import { geminiPort } from "./gemini/port.ts";
import { geminiSource } from "./gemini/send.ts";
import { messagesPort } from "./messages/port.ts";
import { ollamaChatPort, ollamaGeneratePort } from "./ollama/port.ts";
import { ollamaSource } from "./ollama/send.ts";
import type { ServedPort } from "./port-state.ts";
import { responsesPort } from "./responses/port.ts";
import { transcriptionsPort, translationsPort } from "./transcriptions/port.ts";
import { messagesSource } from "./messages/send.ts";
import { responsesSource } from "./responses/send.ts";
import type { SourceApi, SourcePort } from "./source-port.ts";

/** Every API that generates. */
export const ports: readonly ServedPort[] = [
  chatPort,
  completionsPort,
  responsesPort,
  messagesPort,
  ollamaChatPort,
  ollamaGeneratePort,
  geminiPort,
  transcriptionsPort,
  translationsPort,
];

/** The APIs of upstreams for conversations. */
export const sourcePorts: Readonly<Record<SourceApi, SourcePort>> = {
  chat: chatSource,
  responses: responsesSource,
  messages: messagesSource,
  ollama: ollamaSource,
  gemini: geminiSource,
};
