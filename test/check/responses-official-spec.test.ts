import { beforeAll, describe, expect, test } from "vitest";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";
import { isStream } from "../../src/judge/check/rules/exchange.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { bodyView, streamView } from "../../src/judge/check/rules/view.ts";
import { legalResponseBody, legalResponseStream } from "./legal/responses.ts";
import { hasOfficialSchemas, type OfficialSchemas, readOfficialSchemas } from "./official-schemas.ts";
import { oneOf, seeded } from "./random.ts";
import { spoiledValue } from "./spoiled-value.ts";
import { times } from "../support/runs.ts";

// The schemas of the rules are in our own words. Here OpenAI's are compiled from its document, and what they reject must be found.

if (!hasOfficialSchemas) console.log("skipped: no ../shared/openapi to compare responses with");

/**
 * What the document demands and OpenAI itself does not send, or not always: the name in the end of a call's arguments; cache_write_tokens
 * (only since 2026-07); no null for user, usage and the
 * description of a format (which then fits no format), custom tools and namespaces that fit one of its kinds of tools alone.
 */
const tolerated =
  /must have required property '(?:name|cache_write_tokens)'$|^(response )?(user must be string|usage must be object|text format |tools \d+ )/;

describe.skipIf(!hasOfficialSchemas)("OpenAI's own schemas of the Responses API", () => {
  let official: OfficialSchemas;
  /** The schema of each event, by its type. */
  const ofEvents = new Map<unknown, string>();

  beforeAll(() => {
    official = readOfficialSchemas();
    const union = official.components.ResponseStreamEvent as { anyOf: { $ref: string }[] };
    for (const { $ref } of union.anyOf) {
      const name = $ref.slice($ref.lastIndexOf("/") + 1);
      const { properties } = official.components[name] as { properties: { type: { enum: string[] } } };
      ofEvents.set(properties.type.enum[0], name);
    }
  });

  /** The schema of each whole answer, by its endpoint; a deletion has none. */
  const whole: Partial<Record<Exchange["endpoint"], string>> = {
    responses: "Response",
    "response-tokens": "TokenCountsResource",
    "response-items": "ResponseItemList",
    "response-compaction": "CompactResource",
  };

  function violationsOf(exchange: Exchange): readonly string[] {
    if (exchange.response.status >= 400) return official.rejected("ErrorResponse", bodyView(exchange).value);
    if (!isStream(exchange)) {
      const name = whole[exchange.endpoint];
      return name === undefined ? [] : official.rejected(name, bodyView(exchange).value).filter(isTold);
    }
    return streamView(exchange).chunks.flatMap(({ value }) => {
      const schema = value.type === "error" ? undefined : ofEvents.get(value.type);
      return schema === undefined ? [] : official.rejected(schema, value).filter(isTold);
    });
  }

  test("accept what our writers write", () => {
    const found: string[] = [];
    for (let seed = 0; seed < times(80); seed++) {
      for (const { exchange } of [legalResponseStream(seed), legalResponseBody(seed)])
        for (const violation of violationsOf(exchange)) found.push(`seed ${seed}: ${violation}`);
    }
    expect([...new Set(found)].slice(0, 20)).toEqual([]);
  });

  test("reject nothing in which no rule finds anything", () => {
    const missed: string[] = [];
    let wrong = 0;
    for (let seed = 0; seed < times(400); seed++) {
      const { exchange } = seed % 2 === 0 ? legalResponseStream(seed) : legalResponseBody(seed);
      const spoiled = withOneSpoiled(exchange, seeded(seed));
      const violations = violationsOf(spoiled);
      // What was put in is shown again; no rule judges what a request may hold.
      if (violations.length === 0 || /items|compaction/.test(exchange.endpoint)) continue;
      wrong++;
      if (judge(spoiled).findings.length === 0) missed.push(`seed ${seed}: ${violations.slice(0, 3).join("; ")}`);
    }
    expect(missed.slice(0, 30)).toEqual([]);
    expect(wrong).toBeGreaterThan(150);
  });
});

function isTold(error: string): boolean {
  return !tolerated.test(error);
}

/** The exchange with one value somewhere in its JSON dropped, or of another type. */
function withOneSpoiled(exchange: Exchange, random: () => number): Exchange {
  const { body } = exchange.response;
  if (!isStream(exchange)) return withBody(exchange, JSON.stringify(spoiledValue(JSON.parse(body), random)));
  const data = oneOf(
    body.split("\n").filter((line) => line.startsWith("data: {")),
    random,
  );
  const value: unknown = JSON.parse(data.slice("data: ".length));
  return withBody(
    exchange,
    body.replace(data, () => `data: ${JSON.stringify(spoiledValue(value, random))}`),
  );
}

function withBody(exchange: Exchange, body: string): Exchange {
  return { ...exchange, response: { ...exchange.response, body } };
}
