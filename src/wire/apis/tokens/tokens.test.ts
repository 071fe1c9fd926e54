import { expect, test } from "vitest";
import { runSync } from "../../core/steps.ts";
import { serialize } from "../members.ts";
import { llamaTokens, vllmTokens } from "./schema.ts";
import { writeTokens } from "./tokens.ts";

const bytes = [
  [72, 105],
  [240, 159],
];
const tokenization = { tokens: [5, 6], bytes };

test.each([
  ["llama.cpp", llamaTokens, false],
  ["llama.cpp", llamaTokens, true],
  ["vllm", vllmTokens, false],
  ["vllm", vllmTokens, true],
] as const)("the tokens in the form of %s are those of the schema", (form, schema, withTexts) => {
  const json = runSync(writeTokens(tokenization, form, withTexts, 4096));
  const value: unknown = JSON.parse(json);
  expect(schema.safeParse(value).error?.issues).toBeUndefined();
  expect(json).toBe(serialize(schema, value));
});
