import type { AskedAnswer } from "../choices-answer.ts";

/** Where a choice's text begins: choices are numbered prompt by prompt. */
export function textOffset(choice: number, { textOffsets }: AskedAnswer): number {
  if (!textOffsets) return 0;
  return textOffsets.byPrompt[Math.floor(choice / textOffsets.choicesPerPrompt)] ?? 0;
}
