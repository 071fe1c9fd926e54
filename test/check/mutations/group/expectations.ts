import { type Expectation, judgeExpectation } from "../../../../src/judge/check/rules/group/expectation.ts";
import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { legalBody, refused } from "../../legal/body.ts";
import { legalStream } from "../../legal/stream.ts";
import { exact, lean } from "../../../../src/wire/apis/profile.ts";
import { between, oneOf, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";

interface Expected {
  readonly exchange: Exchange;
  readonly expects: Expectation;
}

/** An answer, streamed or not, to a request that is right. */
function answered(seed: number): Expected | undefined {
  const { exchange } = seeded(seed)() < 0.5 ? legalStream(seed) : legalBody(seed);
  return exchange.response.status === 200 ? { exchange, expects: "answer" } : undefined;
}

/** The refusal of a request that is wrong, as OpenAI refuses it. */
function rejected(seed: number): Expected | undefined {
  const random = seeded(seed);
  const exchange = refused(oneOf([lean, exact], random), random);
  const { status, body } = exchange.response;
  if (status >= 500) return undefined;
  const { error } = JSON.parse(body) as { error: { param: string | null } };
  return { exchange, expects: { refusal: status, param: error.param } };
}

function withStatus({ exchange, expects }: Expected, status: number): Expected {
  return { exchange: { ...exchange, response: { ...exchange.response, status } }, expects };
}

function withParam({ exchange, expects }: Expected, param: (now: string) => unknown): Expected | undefined {
  if (typeof expects === "string" || expects.param === null) return undefined;
  const value = JSON.parse(exchange.response.body) as { error: Record<string, unknown> };
  value.error.param = param(expects.param);
  return { exchange: { ...exchange, response: { ...exchange.response, body: JSON.stringify(value) } }, expects };
}

function withStream({ exchange, expects }: Expected, stream: boolean | undefined): Expected {
  const body = { ...exchange.request.body, stream };
  return { exchange: { ...exchange, request: { ...exchange.request, body } }, expects };
}

type Change = (expected: Expected, random: () => number) => Expected | undefined;
const wrong = [
  ["answer/status", "a refusal", answered, (one, random) => withStatus(one, oneOf([400, 404, 422, 500, 503], random))],
  ["answer/status", "another success", answered, (one) => withStatus(one, 202)],
  ["answer/stream", "the other form", answered, (one) => withStream(one, one.exchange.request.body?.stream !== true)],
  ["wrong/status", "an answer", rejected, (one) => withStatus(one, 200)],
  [
    "wrong/status",
    "a defect of the server's",
    rejected,
    (one, random) => withStatus(one, oneOf([500, 502, 503], random)),
  ],
  [
    "wrong/exact-status",
    "another status",
    rejected,
    (one, random) => withStatus(one, oneOf([402, 409, 418, 422], random)),
  ],
  ["wrong/param", "no param", rejected, (one) => withParam(one, () => null)],
  ["wrong/param", "another param", rejected, (one) => withParam(one, () => "user")],
  ["wrong/param", "a path above it", rejected, (one) => withParam(one, (now) => now.slice(0, -1))],
  ["wrong/param", "a param that is no text", rejected, (one) => withParam(one, (now) => [now])],
] as const satisfies readonly (readonly [string, string, (seed: number) => Expected | undefined, Change])[];

/** What a probe expected, and something else that came. */
export const expectationMutations: readonly IllegalChange[] = wrong.map(([rule, name, from, change]) => ({
  rule,
  name,
  make(seed) {
    const expected = from(seed);
    const changed = expected && (change as Change)(expected, seeded(seed));
    return changed && judgeExpectation(changed.exchange, changed.expects).findings;
  },
}));

const right: readonly [string, (seed: number) => Expected | undefined, Change][] = [
  ["an answer as expected", answered, (one) => one],
  ["a refusal as expected", rejected, (one) => one],
  ["a param below the one that is meant", rejected, (one) => withParam(one, (now) => `${now}.function.name`)],
  [
    "whatever a server likes",
    answered,
    (one, random) => ({ ...withStatus(one, between(200, 599, random)), expects: "any" }),
  ],
];

export const legalExpectations: readonly LegalChange[] = right.map(([name, from, change]) => ({
  name,
  make(seed) {
    const expected = from(seed);
    const changed = expected && change(expected, seeded(seed));
    return changed && judgeExpectation(changed.exchange, changed.expects).findings;
  },
}));
