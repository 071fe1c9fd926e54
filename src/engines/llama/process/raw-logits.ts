import type { ControlledEvaluateInputItem, LlamaContextSequence, Token } from "node-llama-cpp";
import type { LogitWindow } from "./draw-token.ts";

/** How many of the likeliest tokens are fetched first; enough to decide nearly every draw, and cheap beside sorting the vocabulary. */
export const windowSize = 512;

/** What to ask for at one position. With temperature 0 and nothing else the library's sampler chain leaves the logits as they are. */
function asked(wanted: "window" | "whole" | { readonly top: number; readonly token: Token }): {
  generateNext: NonNullable<Extract<ControlledEvaluateInputItem, readonly unknown[]>[1]["generateNext"]>;
} {
  const options = { temperature: 0 };
  if (wanted === "whole") return { generateNext: { logits: true, options } };
  const filter =
    wanted === "window"
      ? { tokens: [], includeTop: windowSize }
      : { tokens: [wanted.token], includeTop: Math.max(1, wanted.top) };
  return { generateNext: { logits: { filter }, totalLogitWeight: true, options } };
}

/** Evaluates tokens and reads the raw logits of what follows the last one: a window of them, or all. */
export async function readLogits(
  sequence: LlamaContextSequence,
  input: readonly Token[],
  wanted: "window" | "whole",
  vocabularySize: number,
): Promise<LogitWindow> {
  const whole = wanted === "whole" || vocabularySize <= windowSize;
  const items: ControlledEvaluateInputItem[] = input.slice(0, -1);
  const last = input.at(-1);
  if (last === undefined) throw new RangeError("No token to evaluate.");
  items.push([last, asked(whole ? "whole" : "window")]);
  const output = (await sequence.controlledEvaluate(items)).at(-1)?.next;
  if (!output?.logits) throw new Error("The library returned no logits.");
  return toWindow(output.logits, output.totalLogitWeight, vocabularySize);
}

/** Evaluates a piece of a prompt and reads, for each of its tokens, the logits of the token that follows in the prompt and its rivals. */
export async function readPromptLogits(
  sequence: LlamaContextSequence,
  piece: readonly Token[],
  following: readonly (Token | undefined)[],
  top: number,
  vocabularySize: number,
): Promise<(LogitWindow | undefined)[]> {
  const items = piece.map((token, i): ControlledEvaluateInputItem => {
    const next = following[i];
    return next === undefined ? token : [token, asked({ top, token: next })];
  });
  const outputs = await sequence.controlledEvaluate(items);
  return piece.map((_, i) => {
    const next = outputs[i]?.next;
    return next?.logits && toWindow(next.logits, next.totalLogitWeight, vocabularySize);
  });
}

function toWindow(
  logits: ReadonlyMap<Token, number>,
  totalWeight: number | undefined,
  vocabularySize: number,
): LogitWindow {
  const tokens = [...logits.keys()];
  const values = [...logits.values()];
  // They come best first, but for single tokens that were asked for by name: those stand last.
  let sorted = 1;
  while (sorted < values.length && (values[sorted] ?? 0) <= (values[sorted - 1] ?? 0)) sorted++;
  for (; sorted < values.length; sorted++) {
    const [token, value] = [tokens[sorted], values[sorted]];
    if (token === undefined || value === undefined) break;
    const place = values.findIndex((other) => other < value);
    tokens.splice(sorted, 1);
    values.splice(sorted, 1);
    tokens.splice(place, 0, token);
    values.splice(place, 0, value);
  }
  const others = Math.max(0, vocabularySize - tokens.length);
  const largest = values[0] ?? 0;
  const known = values.reduce((sum, logit) => sum + Math.exp(logit - largest), 0);
  return {
    tokens,
    logits: values,
    others,
    othersWeight: others === 0 ? 0 : Math.max(0, (totalWeight ?? known) - known),
  };
}
