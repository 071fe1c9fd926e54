import { beforeAll, describe, expect, test } from "vitest";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";
import { isStream } from "../../src/judge/check/rules/exchange.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { bodyView, streamView } from "../../src/judge/check/rules/view.ts";
import { legalBody } from "./legal/body.ts";
import { legalStream } from "./legal/stream.ts";
import { hasOfficialSchemas, type OfficialSchemas, readOfficialSchemas } from "./official-schemas.ts";
import { oneOf, seeded } from "./random.ts";
import { spoiledValue } from "./spoiled-value.ts";
import { times } from "../support/runs.ts";

// The schemas of the rules are in our own words. Here OpenAI's are compiled from its document, and what they reject must be found.

const isHere = hasOfficialSchemas;
if (!isHere) console.log("skipped: no ../shared/openapi to compare with");

const schemas = {
  chat: "CreateChatCompletionResponse",
  chunk: "CreateChatCompletionStreamResponse",
  completions: "CreateCompletionResponse",
  models: "ListModelsResponse",
  model: "Model",
  error: "ErrorResponse",
} as const;

/**
 * What the document demands and OpenAI itself does not always send, so that it can be no error: `refusal` (since 2024-09), `logprobs`
 * (not of reasoning models), a fingerprint that is no null, alternatives of tokens where none were asked for.
 */
const tolerated =
  /must have required property '(?:refusal|logprobs|system_fingerprint)'|system_fingerprint must be string|top_logprobs must be array/;
/** Its one schema of completions is that of whole ones: chunks have a null finish reason while they go on, and a null usage. */
const toleratedInChunks = /finish_reason must be|^usage must be (?:object|null)/;

describe.skipIf(!isHere)("OpenAI's own schemas", () => {
  let official: OfficialSchemas;
  beforeAll(() => {
    official = readOfficialSchemas();
  });

  /** What the document rejects, in its validator's words. */
  function rejected(schema: string, value: unknown): readonly string[] {
    const errors = official.rejected(schema, value);
    const told = errors.filter((error) => !tolerated.test(error));
    // Of a union, the other branch reports the same fault once more.
    return told.every((error) => error.endsWith(" must be null")) && told.length < errors.length ? [] : told;
  }

  function violationsOf(exchange: Exchange): readonly string[] {
    if (isStream(exchange)) {
      const schema = exchange.endpoint === "chat" ? schemas.chunk : schemas.completions;
      const { chunks } = streamView(exchange);
      const violations = chunks.flatMap(({ value }) => rejected("error" in value ? schemas.error : schema, value));
      return violations.filter((error) => schema === schemas.chunk || !toleratedInChunks.test(error));
    }
    const { value } = bodyView(exchange);
    const endpoint = exchange.response.status >= 400 ? "error" : exchange.endpoint;
    return endpoint in schemas ? rejected(schemas[endpoint as keyof typeof schemas], value) : [];
  }

  test("accept what our writers write", () => {
    const found: string[] = [];
    for (let seed = 0; seed < times(100); seed++) {
      const { exchange } = seed % 2 === 0 ? legalStream(seed) : legalBody(seed);
      for (const violation of violationsOf(exchange)) found.push(`seed ${seed}: ${violation}`);
    }
    expect([...new Set(found)].slice(0, 20)).toEqual([]);
  });

  test("reject nothing in which no rule finds anything", () => {
    const missed: string[] = [];
    let wrong = 0;
    for (let seed = 0; seed < times(600); seed++) {
      const { exchange } = seed % 2 === 0 ? legalStream(seed) : legalBody(seed);
      const spoiled = withOneSpoiled(exchange, seeded(seed));
      const violations = spoiled ? violationsOf(spoiled) : [];
      if (!spoiled || violations.length === 0) continue;
      wrong++;
      if (judge(spoiled).findings.length === 0) missed.push(`seed ${seed}: ${violations.join("; ")}`);
    }
    expect(missed.slice(0, 20)).toEqual([]);
    expect(wrong).toBeGreaterThan(200);
  });
});

/** The exchange with one value somewhere in its JSON dropped, or of another type. */
function withOneSpoiled(exchange: Exchange, random: () => number): Exchange | undefined {
  const { body } = exchange.response;
  if (!isStream(exchange)) return withBody(exchange, JSON.stringify(spoiledValue(JSON.parse(body), random)));
  const frames = body.split("\n\n").filter((frame) => frame.startsWith("data: {"));
  const frame = oneOf(frames, random);
  const value: unknown = JSON.parse(frame.slice("data: ".length));
  return withBody(
    exchange,
    body.replace(frame, () => `data: ${JSON.stringify(spoiledValue(value, random))}`),
  );
}

function withBody(exchange: Exchange, body: string): Exchange {
  return { ...exchange, response: { ...exchange.response, body } };
}
