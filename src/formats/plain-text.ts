import type { PlainFormat } from "./format.ts";

/** All is content: no calls, no reasoning, no special tokens. */
export const plainText: PlainFormat = { kind: "plain", id: "plain-text", calls: [] };
