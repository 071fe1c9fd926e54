import { isObject } from "../../src/wire/core/json.ts";
import type { Json } from "../../src/judge/between/facts.ts";

/*
 * What the rules of Anthropic's API do not say without an account, in its words: whose thinking it is. Sources: the issues
 * anthropics/claude-code#20717, strands-agents/sdk-python#1856, envoyproxy/ai-gateway#1712.
 */

export interface RuleOptions {
  /** Whether the account has given a block of thinking. */
  isOwn(block: Json): boolean;
  /** Members of the request that the platform refuses: `cache_control`, on Amazon Bedrock and Vertex AI. */
  readonly refusedMembers: readonly string[];
}

/** Returns the words of the refusal of a request, `undefined` if it is right. */
export function refusalOf(body: Json, { isOwn, refusedMembers }: RuleOptions): string | undefined {
  for (const name of Object.keys(body))
    if (refusedMembers.includes(name)) return `${name}: Extra inputs are not permitted`;
  for (const [at, message] of listOf(body["messages"]).entries()) {
    for (const [index, block] of listOf(message["content"]).entries()) {
      const { type, signature } = block;
      const place = `messages.${at}.content.${index}`;
      if (type === "thinking" && typeof signature === "string" && !isOwn(block))
        return `${place}: Invalid \`signature\` in \`thinking\` block`;
      if (type === "redacted_thinking" && !isOwn(block))
        return `${place}: Invalid \`data\` in \`redacted_thinking\` block`;
    }
  }
  return undefined;
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
