import type { PlainFormat } from "./format.ts";

/** The format in which everything is content: no calls, no reasoning, no special tokens. */
export const plainText: PlainFormat = { kind: "plain", id: "plain-text", calls: [] };
