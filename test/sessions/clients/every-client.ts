import { aiSdkClients } from "./ai-sdk.ts";
import type { SessionClient } from "./client.ts";
import { langChainClients } from "./langchain.ts";
import { rawChat } from "./raw-chat.ts";
import { rawGemini } from "./raw-gemini.ts";
import { rawMessages } from "./raw-messages.ts";
import { rawOllama } from "./raw-ollama.ts";
import { rawResponses } from "./raw-responses.ts";
import { sdkClients } from "./sdks.ts";

const returns = ["everything", "half", "nothing"] as const;

/** Clients without a library: they return all, a part, or nothing of the state. */
export const rawClients: readonly SessionClient[] = [
  ...returns.map(rawChat),
  ...(["include", "plain", "previous_response_id", "half", "nothing"] as const).map(rawResponses),
  ...returns.map(rawMessages),
  ...returns.map(rawOllama),
  ...returns.map(rawGemini),
];

export const libraryClients: readonly SessionClient[] = [...aiSdkClients, ...sdkClients, ...langChainClients];
