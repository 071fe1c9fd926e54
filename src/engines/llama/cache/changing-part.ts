import type { PartingTexts } from "../../../core/cache-miss.ts";

/** What kind of text changes by itself from request to request at the place where two prompts part; undefined: none that is known. */
export type ChangingPart = "billing-header" | "date" | "id" | "counter";

/** `before` should be as long as a line. */
export function changingPart({ before, known, asked }: PartingTexts): ChangingPart | undefined {
  // Tokens part before characters do.
  let same = 0;
  while (same < known.length && known[same] === asked[same]) same++;
  const at = before.length + same;
  const texts = [before + known, before + asked];
  if (billingHeader.test(lineBefore(texts[0] ?? "", at))) return "billing-header";
  for (const [kind, patterns] of kinds) {
    const ends = texts.map((text) => Math.max(...patterns.map((pattern) => endOfMatchAt(text, pattern, at))));
    // Where both end at the place, they are the same.
    if (ends.every((end) => end >= at) && ends.some((end) => end > at)) return kind;
  }
  return undefined;
}

/** As Claude Code writes it first into the system prompt. Source: https://github.com/ggml-org/llama.cpp/issues/20623. */
const billingHeader = /\bx-[a-z0-9-]*(?:billing|header)[a-z0-9-]*:/i;

const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";

/** The first kind that both texts have at the place is it. */
const kinds: readonly (readonly [ChangingPart, readonly RegExp[]])[] = [
  [
    "id",
    [
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi,
      // A long word of letters and digits.
      /(?<![\w-])(?=[\w-]*[A-Za-z])(?=[\w-]*\d[\w-]*\d)(?!\d{4}-\d\d-\d\d)[\w-]{12,}/g,
    ],
  ],
  [
    "date",
    [
      /\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?/g,
      /\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}/g,
      /\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?/g,
      new RegExp(`\\b${month}\\.? \\d{1,2}(?:st|nd|rd|th)?(?:,? \\d{4})?`, "gi"),
      new RegExp(`\\b\\d{1,2}(?:st|nd|rd|th|\\.)? ${month}\\.?(?:,? \\d{4})?`, "gi"),
      /\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b/gi,
      // Unix time, in seconds or milliseconds.
      /(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)/g,
    ],
  ],
  ["counter", [/\d+(?:[.,]\d+)*/g]],
];

/** Where a match ends that begins before the place or at it; -1: there is none that reaches it. */
function endOfMatchAt(text: string, pattern: RegExp, at: number): number {
  for (const { 0: match, index } of text.matchAll(pattern)) {
    if (index > at) return -1;
    if (at <= index + match.length) return index + match.length;
  }
  return -1;
}

function lineBefore(text: string, at: number): string {
  const before = text.slice(0, at);
  return before.slice(before.lastIndexOf("\n") + 1);
}
