import { existsSync, readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { Exchange } from "../../src/check/rules/exchange.ts";
import { isStream, judge } from "../../src/check/rules/judge.ts";
import { bodyView, streamView } from "../../src/check/rules/view.ts";
import { legalBody } from "./legal/body.ts";
import { legalStream } from "./legal/stream.ts";
import { between, oneOf, seeded } from "./random.ts";

// The schemas of the rules are in our own words. Here OpenAI's are compiled from its document, and what they reject must be found.

const document = new URL("../../../shared/openapi/openapi-2026-08-21.yaml", import.meta.url);
const isHere = existsSync(document);
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

describe.skipIf(!isHere)("OpenAI's own schemas", { timeout: 240_000 }, () => {
  const compiled = new Map<string, ValidateFunction>();

  beforeAll(() => {
    const { components } = parse(readFileSync(document, "utf8")) as { components: object };
    const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
    ajv.addSchema({ $id: "openai", components: withNulls(components) as object });
    for (const name of Object.values(schemas))
      compiled.set(name, ajv.compile({ $ref: `openai#/components/schemas/${name}` }));
  }, 240_000);

  /** What the document rejects, in its validator's words. */
  function rejected(schema: string, value: unknown): readonly string[] {
    const validate = compiled.get(schema);
    if (!validate || validate(value)) return [];
    const errors = (validate.errors ?? [])
      .filter(({ keyword }) => keyword !== "anyOf" && keyword !== "oneOf")
      .map(({ instancePath, message }) => `${instancePath.replaceAll("/", " ").trim()} ${message ?? ""}`);
    const told = errors.filter((error) => !tolerated.test(error));
    // Of a union, the other branch reports the same fault once more.
    return told.every((error) => error.endsWith(" must be null")) && told.length < errors.length ? [] : told;
  }

  function offencesOf(exchange: Exchange): readonly string[] {
    if (isStream(exchange)) {
      const schema = exchange.endpoint === "chat" ? schemas.chunk : schemas.completions;
      const { chunks } = streamView(exchange);
      const offences = chunks.flatMap(({ value }) => rejected("error" in value ? schemas.error : schema, value));
      return offences.filter((error) => schema === schemas.chunk || !toleratedInChunks.test(error));
    }
    const { value } = bodyView(exchange);
    const endpoint = exchange.response.status >= 400 ? "error" : exchange.endpoint;
    return endpoint in schemas ? rejected(schemas[endpoint as keyof typeof schemas], value) : [];
  }

  test("accept what our writers write", () => {
    const found: string[] = [];
    for (let seed = 0; seed < 600; seed++) {
      const { exchange } = seed % 2 === 0 ? legalStream(seed) : legalBody(seed);
      for (const offence of offencesOf(exchange)) found.push(`seed ${seed}: ${offence}`);
    }
    expect([...new Set(found)].slice(0, 20)).toEqual([]);
  });

  test("reject nothing in which no rule finds anything", () => {
    const missed: string[] = [];
    let wrong = 0;
    for (let seed = 0; seed < 6000; seed++) {
      const { exchange } = seed % 2 === 0 ? legalStream(seed) : legalBody(seed);
      const spoiled = withOneSpoiled(exchange, seeded(seed));
      const offences = spoiled ? offencesOf(spoiled) : [];
      if (!spoiled || offences.length === 0) continue;
      wrong++;
      if (judge(spoiled).findings.length === 0) missed.push(`seed ${seed}: ${offences.join("; ")}`);
    }
    expect(missed.slice(0, 20)).toEqual([]);
    expect(wrong).toBeGreaterThan(2000);
  });
});

/** OpenAPI 3.0 says `nullable` where JSON Schema has a union. */
function withNulls(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withNulls);
  if (typeof schema !== "object" || schema === null) return schema;
  const { nullable, ...rest } = schema as { nullable?: unknown };
  const mapped = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, withNulls(value)]));
  return nullable === true ? { anyOf: [mapped, { type: "null" }] } : mapped;
}

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

/** A copy in which one member, at any depth, is dropped or has a value of another kind. */
function spoiledValue(value: unknown, random: () => number): unknown {
  const copy = structuredClone(value);
  const places = placesIn(copy);
  const { owner, key } = oneOf(places, random);
  if (random() < 0.3) delete (owner as Record<string, unknown>)[key];
  else {
    const others = [null, 7, -1, 0.5, "x", "", true, [], {}, [7], { x: 1 }].filter((other) => other !== owner[key]);
    owner[key] = others[between(0, others.length - 1, random)];
  }
  return copy;
}

interface Owner {
  [key: string]: unknown;
}

function placesIn(value: unknown): readonly { readonly owner: Owner; readonly key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  const owner = value as Owner;
  // An array's elements are changed, not dropped: a hole is no JSON.
  return Object.keys(owner).flatMap((key) => [
    ...(Array.isArray(owner) ? [] : [{ owner, key }]),
    ...placesIn(owner[key]),
  ]);
}
