import fc from "fast-check";
import { expect, test } from "vitest";
import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { everything, filterIn, matches, namedModels, queryOf } from "./request-filter.ts";
import { constantRepairs, partsOf, repairsIn, rowsOf, threadsOf, totalsOf } from "./threads.ts";

function request(number: number, more: Partial<RequestSummary> = {}): RequestSummary {
  const id = `req_${number}`;
  return { id, number, at: number * 1000, ms: 500, method: "POST", path: "/v1/messages", outcome: "finished", ...more };
}

/** A session with a title, a sub-agent and a count of tokens beside three turns, the newest first. */
const session = [
  request(1, { conversation: "req_1", turn: 1, snippet: "Build it", client: "claude-cli/2.1.330", prompt_tokens: 100 }),
  request(2, { conversation: "req_2", turn: 1, purpose: "title", outcome: "failed" }),
  request(3, { path: "/v1/messages/count_tokens" }),
  request(4, { conversation: "req_4", turn: 1, purpose: "sub-agent" }),
  request(5, { conversation: "req_1", turn: 2, prompt_tokens: 200, cached_tokens: 90, completion_tokens: 7 }),
  request(6, { conversation: "req_6", turn: 1 }),
  request(7, { conversation: "req_1", turn: 3, topic: "Build it", repairs: { comment: 2, order: 1 } }),
]
  .map((one) => ({ ...one, thread: "req_1" }))
  .reverse();

test("a session is one row, which opens to its requests", () => {
  const other = request(8);
  const threads = threadsOf([other, ...session]);
  expect(rowsOf(threads, () => false).map(({ kind }) => kind)).toEqual(["request", "thread"]);
  const rows = rowsOf(threads, () => true);
  expect(rows.map((row) => (row.kind === "request" ? row.part : row.kind))).toEqual([
    undefined,
    "thread",
    "turn",
    "side request",
    "turn",
    "sub-agent",
    "token count",
    "title",
    "turn",
  ]);
});

test("the sums of a session", () => {
  expect(totalsOf({ id: "req_1", requests: session })).toEqual({
    client: "claude-cli/2.1.330",
    topic: "Build it",
    turns: 3,
    sideRequests: 4,
    promptTokens: 300,
    cachedTokens: 90,
    completionTokens: 7,
    failures: 1,
    open: 0,
    cacheMisses: 0,
    repairs: 3,
    start: 1000,
    end: 7500,
  });
});

test("every request is in one row, whatever threads there are", () => {
  const some = fc.array(fc.record({ thread: fc.option(fc.nat(5), { nil: undefined }), conversation: fc.nat(3) }));
  fc.assert(
    fc.property(some, (given) => {
      const requests = given.map(({ thread, conversation }, number) =>
        request(number, {
          conversation: `c${conversation}`,
          ...(thread !== undefined && { thread: `t${thread}` }),
        }),
      );
      const threads = threadsOf(requests);
      const listed = rowsOf(threads, () => true).flatMap((row) => (row.kind === "request" ? [row.request.id] : []));
      expect(listed.toSorted()).toEqual(requests.map(({ id }) => id).toSorted());
      for (const thread of threads) {
        const partOf = partsOf(thread);
        expect(thread.requests.some((one) => partOf(one) === "turn")).toBe(true);
      }
    }),
  );
});

test("the address keeps a filter", () => {
  const filter = fc.record({
    q: fc.string(),
    model: fc.string(),
    api: fc.string(),
    key: fc.string(),
    outcome: fc.string(),
    status: fc.string(),
    finding: fc.string(),
    cache: fc.constantFrom("" as const, "missed" as const),
    within: fc.string(),
    slow: fc.string(),
  });
  fc.assert(fc.property(filter, (given) => void expect(filterIn(queryOf(given))).toEqual(given)));
  expect(filterIn("modle=x&cache=no")).toEqual(everything);
  expect(queryOf(everything)).toBe("");
});

test("aliases of one model are one entry; models of one name on two engines are two", () => {
  const requests = [
    request(1, { model: "gpt-5", engine: "a", engine_model: "qwen" }),
    request(2, { model: "qwen", engine: "a", engine_model: "qwen" }),
    request(3, { model: "b/qwen", engine: "b", engine_model: "qwen" }),
    request(4, { model: "llama", engine: "a", engine_model: "llama" }),
    request(5, { model: "unknown" }),
    request(6),
  ];
  expect([...namedModels(requests)]).toEqual([
    ["llama of a", "llama"],
    ["qwen of a", "qwen of a"],
    ["qwen of b", "qwen of b"],
    ["unknown", "unknown"],
  ]);
  const chosen = requests.filter((one) => matches(one, undefined, { ...everything, model: "qwen of a" }));
  expect(chosen.map(({ number }) => number)).toEqual([1, 2]);
});

test("filters combine", () => {
  const miss = { cause: "other", at: 0, says: "…" } as unknown as NonNullable<RequestSummary["cache_miss"]>;
  const requests = [
    request(1, { outcome: "failed", status: 500, ms: 6000, api: "chat", key: "ann" }),
    request(2, { outcome: "refused", status: 404 }),
    request(3, { cache_miss: miss, ms: 6000 }),
    request(4, { repairs: { comment: 1 } }),
  ];
  const numbers = (filter: object, rules: readonly string[] = []): number[] =>
    requests
      .filter((one) => matches(one, { rules, errors: 0, warnings: 0 }, { ...everything, ...filter }, 10_000))
      .map(({ number }) => number);
  expect(numbers({ outcome: "error" })).toEqual([1, 2]);
  expect(numbers({ outcome: "error", slow: "5000" })).toEqual([1]);
  expect(numbers({ status: "404" })).toEqual([2]);
  expect(numbers({ cache: "missed" })).toEqual([3]);
  expect(numbers({ finding: "repair" })).toEqual([4]);
  expect(numbers({ finding: "repair comment" })).toEqual([4]);
  expect(numbers({ finding: "repair order" })).toEqual([]);
  expect(numbers({ finding: "any" })).toEqual([]);
  expect(numbers({ finding: "rule usage/zero" }, ["usage/zero"])).toEqual([1, 2, 3, 4]);
  expect(numbers({ within: "7", api: "" })).toEqual([3, 4]);
  expect(numbers({ api: "chat", key: "ann" })).toEqual([1]);
});

// A server that always leaves out its usage had a mark at each of its rows, in which the one answer that broke off was lost.
test("repairs that every answer of a server needs are counted once, for the server", () => {
  const answers: readonly Readonly<Record<string, number>>[] = [
    { "no-usage": 1, comment: 3 },
    { "no-usage": 1 },
    { "no-usage": 1, "early-finish": 2 },
  ];
  const of = (engine: string): RequestSummary[] => answers.map((repairs, at) => request(at, { engine, repairs }));
  const other = request(9, { engine: "two", repairs: { comment: 1 } });
  const refused = request(10, { engine: "one", outcome: "refused" });
  const constant = constantRepairs([...of("one"), refused, other, request(11)]);
  expect([...constant].map(([engine, kinds]) => [engine, ...kinds])).toEqual([["one", "no-usage"]]);
  expect(of("one").map((one) => repairsIn(one, constant))).toEqual([3, 0, 2]);
  expect(repairsIn(other, constant)).toBe(1);
  // After two answers, "every" says nothing.
  expect(constantRepairs(of("one").slice(1)).size).toBe(0);
  // One exact answer, and the others are not needed by every one.
  expect(constantRepairs([...of("one"), request(12, { engine: "one" })]).size).toBe(0);
});
