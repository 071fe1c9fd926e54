import { callMessages, callsOfMessage, listOf, pieces, signer } from "./chat-server.ts";
import type { ChatServer, Json, Refusal } from "./chat-server.ts";
import { reasoningOfCall } from "./task.ts";
import type { Step } from "./task.ts";

/*
 * LiteLLM with a Claude behind it. Messages have `reasoning_content` and `thinking_blocks`; these are demanded back. Sources:
 * https://docs.litellm.ai/docs/reasoning_content (members); BerriAI/litellm#29428 (a stream has one block for each delta of the server
 * behind it, with an empty signature until the last); the words: anomalyco/opencode#3077, openai/openai-agents-python#678.
 */

/** A server with a key of its own. */
export function litellm(): ChatServer {
  const { sign, isValid } = signer("litellm");
  const blocksOf = ({ reasoning }: Step): Json[] =>
    reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning, signature: sign("thinking", reasoning) }];
  const problemOf = (message: Json, at: number, since: boolean): Refusal | undefined => {
    const blocks = listOf(message["thinking_blocks"]);
    for (const [index, { thinking, signature }] of blocks.entries())
      if (!isValid(signature, "thinking", thinking))
        return refused(`messages.${at}.content.${index}: Invalid \`signature\` in \`thinking\` block`);
    const [first] = callsOfMessage(message);
    if (!since || blocks.length > 0 || !first || reasoningOfCall(first) === undefined) return undefined;
    return refused(
      `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`,
    );
  };
  return {
    name: "LiteLLM",
    model: "claude-by-litellm",
    owner: "openai",
    created: 1_677_610_602,
    refusal(body) {
      const withCalls = new Map(callMessages(body).map(({ at, since }) => [at, since]));
      for (const [at, message] of listOf(body["messages"]).entries()) {
        const problem = message["role"] === "assistant" && problemOf(message, at, withCalls.get(at) ?? false);
        if (problem) return problem;
      }
      return undefined;
    },
    message: (step) => ({
      ...(step.reasoning !== undefined && { reasoning_content: step.reasoning, thinking_blocks: blocksOf(step) }),
    }),
    deltas: (step) =>
      blocksOf(step).flatMap(({ thinking, ...block }): Json[] => [
        ...pieces(String(thinking)).map((piece) => ({
          reasoning_content: piece,
          thinking_blocks: [{ ...block, thinking: piece, signature: "" }],
        })),
        { reasoning_content: "", thinking_blocks: [{ ...block, thinking: "" }] },
      ]),
  };
}

function refused(text: string): Refusal {
  const raw = JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: text } });
  const message = `litellm.BadRequestError: AnthropicException - ${raw}. Received Model Group=claude-by-litellm\nAvailable Model Group Fallbacks=None`;
  return { status: 400, body: { error: { message, type: null, param: null, code: "400" } } };
}
