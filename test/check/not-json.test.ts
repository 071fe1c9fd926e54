import { expect, test } from "vitest";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { legalBody } from "./legal/body.ts";
import { legalStream } from "./legal/stream.ts";
import { times } from "../support/runs.ts";

// A server whose log probabilities were NaN passed the check: nothing had asked it for any, and rules that found no choices to look at
// in what cannot be read counted as passed.

/** The first number of the body is none that JSON has. */
function unreadable(exchange: Exchange, value: string): Exchange {
  const { response } = exchange;
  return { ...exchange, response: { ...response, body: response.body.replace(/(?<=":\s*)\d+(?:\.\d+)?/, value) } };
}

test.each(["NaN", "Infinity", "-Infinity"])("no answer with %s passes any rule about what it says", (value) => {
  const seen = new Set<string>();
  for (let seed = 0; seed < times(80); seed++) {
    const exchange = unreadable(legalBody(seed).exchange, value);
    if (exchange.response.status !== 200 || !exchange.response.body.includes(value)) continue;
    seen.add(exchange.endpoint);
    for (const demanded of [undefined, "lean", "exact"] as const) {
      const { findings, shown } = judge(exchange, demanded);
      expect(findings.filter(({ rule }) => rule === "body/json")).toMatchObject([
        { start: exchange.response.body.indexOf(value), found: `${value}, which is not JSON` },
      ]);
      // What is left speaks of headers, the status, the length of the text, and its characters before anything is parsed.
      expect(
        shown.filter(
          (rule) => !/^(body\/json|headers\/.*|profile\/headers|failure\/status|text\/surrogates)$/.test(rule),
        ),
      ).toEqual([]);
    }
  }
  expect(seen.size).toBeGreaterThan(3);
});

test("no stream with NaN in an event passes", () => {
  for (let seed = 0; seed < times(60); seed++) {
    const exchange = unreadable(legalStream(seed).exchange, "NaN");
    const { findings } = judge(exchange);
    expect(findings).toContainEqual({
      rule: "sse/json",
      start: exchange.response.body.indexOf("NaN"),
      end: exchange.response.body.indexOf("NaN") + 3,
      found: "NaN, which is not JSON",
    });
  }
});
