import type { GenerationFailure, Usage } from "../../core/events.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { tokensInCharacters } from "../../core/estimate-tokens.ts";
import type { ServerProfile } from "./server-profile.ts";

/** What happens to an answer to a prompt that the server has shortened without an error. */
export const truncationModes = ["error", "warn", "allow"] as const;

export type TruncationMode = (typeof truncationModes)[number];

/** Why a prompt is known to be shortened. */
export interface Truncation {
  /** The tokens of the prompt that the server has reported. */
  readonly reported: number;
  /** The tokens of the whole prompt: an estimate, or the count of its tokenizer. */
  readonly expected: number;
  /** The context size that the reported number reveals, in tokens. */
  readonly contextSize?: number;
}

/** The shortest prompt that is compared, in words, and the least number of reported tokens: some servers report a constant. */
const minWords = 500;
const minReported = 64;
/** The context sizes that a server of unknown size may have, in tokens: powers of two. */
const usualSizes = Array.from({ length: 10 }, (_, at) => 2048 * 2 ** at);

/**
 * Whether a server has shortened a prompt, by the usage that it reported; null: it has not, or that cannot be known. Two signs count.
 *
 * - The reported tokens are fewer than half of the words of the messages' texts. No tokenizer joins words, so this cannot happen to a whole
 *   prompt. Tokens from a cache are added, since some APIs report them apart.
 * - The reported tokens are what a context of the known size, or of a power of two, leaves: all of it, or half of it and 2 or 3 tokens, which
 *   is what Ollama keeps (contextShiftPromptLimit in llm/llama_server.go of ollama/ollama, with `num_keep` 4 or 5; issues 3839 and 17427),
 *   and the texts have more characters than that.
 *
 * Texts are not counted if they are short enough for the reported tokens. Servers that refuse long prompts (`truncates: false`) are trusted.
 */
export function findTruncation(
  request: Pick<GenerationRequest, "prompt">,
  { promptTokens, promptDetails }: Usage,
  { truncates, contextSize }: Pick<ServerProfile, "truncates" | "contextSize">,
): Truncation | null {
  if (truncates === false || promptTokens < minReported) return null;
  const texts = promptTexts(request);
  const expected = tokensInCharacters(texts.reduce((sum, { length }) => sum + length, 0));
  const sizes = contextSize === undefined ? usualSizes : [contextSize];
  const half = sizes.find((size) => promptTokens === size / 2 + 2 || promptTokens === size / 2 + 3);
  if (half !== undefined && expected > promptTokens * 1.3)
    return { reported: promptTokens, expected, contextSize: half };
  const full = sizes.find((size) => promptTokens === size);
  const isKnown = contextSize !== undefined && truncates === true;
  if (full !== undefined && isKnown && expected > promptTokens)
    return { reported: promptTokens, expected, contextSize: full };
  // Words have three characters and more on average, spaces included: with fewer characters, there are not twice as many words as tokens.
  const all = promptTokens + (promptDetails?.["cached_tokens"] ?? 0);
  if (full === undefined && expected < all * 1.5) return null;
  const words = countWords(texts);
  if (full !== undefined && words > all) return { reported: promptTokens, expected, contextSize: full };
  return words >= minWords && words > all * 2 ? { reported: promptTokens, expected } : null;
}

/**
 * Whether the client's own JSON, which an upstream of the API `dialect` gets, asks to shorten the conversation: with `context_management`
 * (Messages, Responses) or `truncation: "auto"` (Responses). Fewer tokens than the texts have are no loss then.
 */
export function asksToShorten({ passthrough }: Pick<GenerationRequest, "passthrough">, dialect: string): boolean {
  if (passthrough?.dialect !== dialect) return false;
  const { context_management: management, truncation } = passthrough.body;
  return (management ?? null) !== null || truncation === "auto";
}

/** The texts of a prompt that every server gives to its model: no reasoning, no tools, no media. */
export function promptTexts({ prompt }: Pick<GenerationRequest, "prompt">): readonly string[] {
  if (prompt.kind === "text")
    return prompt.prompts.length === 1 ? prompt.prompts.filter((one) => typeof one === "string") : [];
  return prompt.messages.flatMap(({ content }) => {
    if (typeof content === "string") return [content];
    return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []));
  });
}

function countWords(texts: readonly string[]): number {
  let count = 0;
  for (const text of texts) {
    let wasSpace = true;
    for (let at = 0; at < text.length; at++) {
      const isSpace = text.charCodeAt(at) <= 32;
      if (wasSpace && !isSpace) count++;
      wasSpace = isSpace;
    }
  }
  return count;
}

/** The failure for a shortened prompt, whose sentence says what to change. `upstream`: its name. */
export function truncationFailure(truncation: Truncation, upstream: string): GenerationFailure {
  const { reported, expected, contextSize } = truncation;
  const enough = 2 ** Math.ceil(Math.log2(expected * 1.25));
  const found =
    contextSize === undefined
      ? `it read ${reported} tokens of about ${expected}`
      : `it read ${reported} tokens of about ${expected}, which is what its context of ${contextSize} tokens leaves`;
  return {
    kind: "context-overflow",
    status: 400,
    code: "context_length_exceeded",
    param: null,
    message: `The upstream ${upstream} has cut the prompt: ${found}. The answer ignores the rest. Give the model a larger context (Ollama: OLLAMA_CONTEXT_LENGTH=${enough}, or num_ctx in its Modelfile; vLLM: --max-model-len; llama-server: --ctx-size), shorten the conversation, or accept such answers with "onTruncation: warn" in the upstream's configuration.`,
    tokens: { asked: Math.max(expected, reported + 1), most: contextSize ?? reported },
  };
}

/** The failure for a prompt that would be shortened; null: it fits. `tokens`: the number that the server's tokenizer has counted. */
export function overflowFailure(tokens: number, contextSize: number, upstream: string): GenerationFailure | null {
  if (tokens <= contextSize) return null;
  return {
    kind: "context-overflow",
    status: 400,
    code: "context_length_exceeded",
    param: null,
    message: `The prompt has ${tokens} tokens, and the upstream ${upstream} would cut it: its context has ${contextSize}. Shorten the conversation, give the model a larger context, or accept such answers with "onTruncation: warn" in the upstream's configuration.`,
    tokens: { asked: tokens, most: contextSize },
  };
}
