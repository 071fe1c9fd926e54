import type { StreamRule } from "../rule.ts";
import type { ChoicePart, StreamView } from "../view.ts";

/* What the rules about streams share. */

export const chat = ["chat"] as const;
export const chatAndCompletions = ["chat", "completions"] as const;
export const openAis = ["chat", "completions", "responses"] as const;
/** Every API that streams. */
export const everyApi = [...openAis, "messages"] as const;

/** A rule in a list. Without `breaks`, no client is known to break. */
type ListedStreamRule = Omit<StreamRule, "judges" | "endpoints" | "breaks"> &
  Partial<Pick<StreamRule, "endpoints" | "breaks">>;

/** Returns the rules about streams of `endpoints`, except rules with endpoints of their own. */
export function streamRulesOf(
  endpoints: StreamRule["endpoints"],
  rules: readonly ListedStreamRule[],
): readonly StreamRule[] {
  return rules.map((rule) => ({ endpoints, breaks: [], ...rule, judges: "stream" }));
}

/** True for a stream of chat or completions that contains an error. */
export function hasError(view: StreamView): boolean {
  return view.chunks.some((chunk) => "error" in chunk.value);
}

/** Returns the content of a choice. */
export function deltaContent(deltas: readonly ChoicePart[]): string {
  return deltas.map(({ delta }) => (typeof delta.content === "string" ? delta.content : "")).join("");
}

/** True for a delta with content that is not empty. */
export function hasContent({ delta }: ChoicePart): boolean {
  return typeof delta.content === "string" && delta.content !== "";
}
