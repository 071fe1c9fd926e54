import { expect, test } from "vitest";
import { inspectedPrompts } from "./prompt-report.ts";

const vocabulary = {
  bytes: (token: number): Uint8Array => Uint8Array.of(token),
  isControl: (token: number): boolean => token === 0x7c,
};
const spelled = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0));

/** The inspected prompts, and the number of steps. */
function inspected(...texts: readonly string[]): { prompts: unknown; steps: number } {
  const prompts = texts.map((text) => spelled(text));
  const making = inspectedPrompts(vocabulary, prompts, []);
  let steps = 1;
  let step = making.next();
  for (; step.done !== true; step = making.next()) steps++;
  return { prompts: step.value, steps };
}

test("prompts are reported with the positions of their tokens", () => {
  expect(inspected("|ab", "c").prompts).toEqual([
    { text: "|ab", lengths: [1, 1, 1], control: [0], quotes: [] },
    { text: "c", lengths: [1], control: [], quotes: [] },
  ]);
});

// A prompt of 1.2 million tokens, which was refused then, was decoded in one step and sent whole: other answers paused for 300 ms.
test("a prompt that is too long is reported in part, and takes many steps", () => {
  const { prompts, steps } = inspected("|x".repeat(400_000), "more");
  expect(prompts).toEqual([{ text: "|x".repeat(2 ** 17), lengths: [], control: [], quotes: [] }]);
  expect(steps).toBeGreaterThan(50);
});
