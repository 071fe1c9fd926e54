import { callMessages } from "./chat-server.ts";
import type { ChatServer } from "./chat-server.ts";
import { withReasoning } from "./reasoning.ts";

/*
 * Kimi's own API. The member must be there in every message that has calls, `""` suffices. Sources:
 * https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model; the words and the form of the error: MoonshotAI/kimi-agent-sdk#169,
 * ClawRouter#12, QuantumNous/new-api#4408.
 */

export const kimi: ChatServer = {
  name: "Kimi",
  model: "kimi-k2-thinking",
  owner: "moonshot",
  refusal(body) {
    const missing = callMessages(body).find(({ message }) => typeof message["reasoning_content"] !== "string");
    if (!missing) return undefined;
    const message = `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${missing.at}`;
    return { status: 400, body: { error: { message, type: "invalid_request_error" } } };
  },
  ...withReasoning("reasoning_content"),
};
