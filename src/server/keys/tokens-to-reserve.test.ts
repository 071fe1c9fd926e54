import { expect, test } from "vitest";
import { tokensToReserve } from "./tokens-to-reserve.ts";

test("an answer reserves what its client allows, for each choice; else a standard that leaves a small limit usable", () => {
  const one = { prompt: { kind: "chat", messages: [], template: {} }, limits: {} } as const;
  const limited = { ...one, limits: { maxTokens: 400 } };
  const texts = { kind: "text", prompts: ["a", "b"], bestOf: 3 } as const;
  expect(tokensToReserve(limited, { tokensPerDay: 10 })).toBe(400);
  expect(tokensToReserve({ ...limited, n: 3 }, { tokensPerMinute: 10 })).toBe(1200);
  expect(tokensToReserve({ ...limited, prompt: texts }, { tokensPerDay: 10 })).toBe(2400);
  expect(tokensToReserve(one, { tokensPerDay: 1e6 })).toBe(1000);
  expect(tokensToReserve(one, { tokensPerDay: 1e6, tokensPerMinute: 555 })).toBe(56);
  expect(tokensToReserve(one, { tokensPerDay: 1e6, answerTokens: 5000 })).toBe(5000);
  expect(tokensToReserve(limited, { requestsPerMinute: 5 })).toBe(0);
});
