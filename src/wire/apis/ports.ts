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
import { converseSource } from "./messages/converse.ts";
import { bedrockSource, vertexSource } from "./messages/platforms.ts";
import type { Platform, SourceApi, SourcePort } from "./source-port.ts";

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

/** The API of an upstream: by default OpenAI's chat. */
export function sourcePortOf({
  api = "chat",
  platform,
}: {
  readonly api?: SourceApi | undefined;
  readonly platform?: Platform | undefined;
}): SourcePort {
  if (platform === "bedrock") return bedrockSource;
  if (platform === "converse") return converseSource;
  if (platform === "vertex") return vertexSource;
  return platform === "azure" ? { ...sourcePorts[api], headers: azureHeaders } : sourcePorts[api];
}

/**
 * Azure's keys have a header of their own; tokens of Entra ID, which are JSON Web Tokens, do not. Source:
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference#authentication.
 */
function azureHeaders(key: string | undefined): Readonly<Record<string, string>> {
  if (key === undefined) return {};
  return key.startsWith("eyJ") ? { authorization: `Bearer ${key}` } : { "api-key": key };
}
