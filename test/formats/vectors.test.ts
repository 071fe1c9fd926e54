import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ParsedText } from "../../src/text/formats/parse-job.ts";
import { readVector, readVectors } from "../support/vectors.ts";
import type { Vector } from "../support/vectors.ts";

// Raw texts of models with the message that they must become, from the tests of five servers.
const waivers = JSON.parse(readFileSync(new URL("../waivers/vectors.json", import.meta.url), "utf8")) as Record<
  string,
  string
>;

/** How much may be waived, and how much must pass, of all vectors of a tier. */
const tiers = { hard: 0.98, reviewed: 0.91, continue: 0.9 } as const;

const vectors = readVectors();
if (vectors.length === 0) console.warn("vectors.test: ../shared/vectors is absent, nothing is compared");

/** Equal but for white space at the ends; arguments as JSON values. */
function matches(vector: Vector, got: ParsedText): boolean {
  const expected = {
    content: (vector.expect.content ?? "").trim(),
    reasoning: (vector.expect.reasoning ?? "").trim(),
    calls: (vector.expect.tool_calls ?? []).map((call) => ({ name: call.name, arguments: valueOf(call.arguments) })),
  };
  return isDeepStrictEqual(
    {
      content: got.content.trim(),
      reasoning: got.reasoning.trim(),
      calls: got.calls.map((call) => ({ name: call.name, arguments: valueOf(call.arguments) })),
    },
    expected,
  );
}

function valueOf(json: unknown): unknown {
  if (typeof json !== "string") return json;
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

describe.skipIf(vectors.length === 0).each(Object.entries(tiers))("tier %s", (tier, least) => {
  const all = vectors.filter((vector) => vector.tier === tier);

  test.each([
    ["whole", () => undefined],
    ["character by character", (vector: Vector) => [...vector.text]],
    ["in the chunks given", (vector: Vector) => vector.chunks],
  ] as const)("%s: all pass but the waived, and no waiver is idle", (_way, chunksOf) => {
    const failed = all
      .filter((vector) => !matches(vector, readVector(vector, chunksOf(vector))))
      .map((vector) => vector.id);
    const waived = all.filter((vector) => Object.hasOwn(waivers, vector.id)).map((vector) => vector.id);
    expect(failed.sort()).toEqual(waived.sort());
    expect((all.length - failed.length) / all.length).toBeGreaterThanOrEqual(least);
  });
});

describe.skipIf(vectors.length === 0)("every vector, of all tiers", () => {
  test("gives the same message for random splits", () => {
    for (const vector of vectors) {
      const whole = readVector(vector);
      fc.assert(
        fc.property(fc.array(fc.nat(Math.max(0, vector.text.length)), { maxLength: 8 }), (places) => {
          const cuts = [...new Set(places)].sort((a, b) => a - b);
          const chunks = [0, ...cuts].map((at, i) => vector.text.slice(at, cuts[i]));
          expect(readVector(vector, chunks), vector.id).toEqual(whole);
        }),
        { numRuns: 10 },
      );
    }
  });
});

test("every waiver names a vector", () => {
  if (vectors.length === 0) return;
  const known = new Set(vectors.map((vector) => vector.id));
  expect(Object.keys(waivers).filter((id) => !known.has(id))).toEqual([]);
});
