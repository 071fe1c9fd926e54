import { openaiVoice } from "./openai-voice.ts";
import type { Voice } from "./voice.ts";

/** Ollama's own API, below `/api`, which this server does not have: its clients read an error as a text. Source: Ollama, server/routes.go. */
export const ollamaVoice: Voice = {
  ...openaiVoice,
  writeFailure: ({ status, message }) => ({
    status,
    contentType: "application/json; charset=utf-8",
    body: JSON.stringify({ error: message }),
  }),
};
