import { afterEach, expect, test } from "vitest";
import { engineSearch, openWebSearch, type WebSearchSetup } from "../../src/serve/hosted/web-search.ts";
import type { HostedResult, HostedToolOptions } from "../../src/wire/core/hosted-tool.ts";
import { searxngDouble, type SearxngDouble } from "../doubles/searxng.ts";

const pages = Array.from({ length: 30 }, (_, at) => ({
  url: `https://${at % 2 === 0 ? "docs.example.com" : "other.org"}/page${at}`,
  title: `Page ${at}`,
  content: `Text ${at} `.repeat(400),
  ...(at === 0 && { publishedDate: "2026-04-30T00:00:00" }),
}));
let double: SearxngDouble | undefined;
const lines: string[] = [];

afterEach(() => {
  double?.close();
  lines.length = 0;
});

function search(
  given: Readonly<Record<string, unknown>>,
  options: HostedToolOptions = {},
  setup: Partial<WebSearchSetup> = {},
  signal = new AbortController().signal,
): Promise<HostedResult> {
  const executor = openWebSearch({
    name: "web_search",
    timeoutMs: 10_000,
    maxCalls: 10,
    maxOutput: 100_000,
    maxResults: 15,
    search: engineSearch("searxng", { url: double?.url }),
    log: (line) => void lines.push(line),
    ...setup,
  });
  const tool = {
    type: "web_search",
    kind: "web_search",
    name: "web_search",
    options,
    path: "tools[0]",
    declaration: {},
  } as const;
  return executor.run({ tool, name: "web_search", arguments: given, messages: [], owner: "one" }, signal);
}

const urls = (result: HostedResult): readonly string[] =>
  result.kind === "search" ? result.results.map(({ url }) => url) : [];

test("a search of a SearXNG returns its pages", async () => {
  double = await searxngDouble(pages);
  const result = await search({ query: " truewire " });
  expect(urls(result)).toHaveLength(8);
  expect(result).toMatchObject({
    results: [{ title: "Page 0", age: "April 30, 2026", text: /^Text 0 / }, {}, {}, {}, {}, {}, {}, {}],
  });
  expect(double.searches[0]?.get("q")).toBe("truewire");
});

test("the client says how much it wants; the configuration has the last word", async () => {
  double = await searxngDouble(pages);
  const amounts = async (
    contextSize: "low" | "medium" | "high",
    setup: Partial<WebSearchSetup> = {},
  ): Promise<number[]> => {
    const result = await search({ query: "q" }, { contextSize }, setup);
    return result.kind === "search" ? [result.results.length, result.results[0]?.text.length ?? 0] : [];
  };
  expect(await amounts("low")).toEqual([5, 500]);
  expect(await amounts("medium")).toEqual([8, 2000]);
  expect(await amounts("high")).toEqual([15, 2800]);
  expect(await amounts("high", { maxResults: 3 })).toEqual([3, 2800]);
  const [results = 0] = await amounts("high", { maxOutput: 5000 });
  expect(results).toBe(2);
});

test("results are of domains that the client and the configuration allow", async () => {
  double = await searxngDouble(pages);
  const hosts = async (options: HostedToolOptions, setup: Partial<WebSearchSetup> = {}): Promise<readonly string[]> => [
    ...new Set(urls(await search({ query: "q" }, options, setup)).map((url) => new URL(url).host)),
  ];
  expect(await hosts({ allowedDomains: ["example.com"] })).toEqual(["docs.example.com"]);
  expect(await hosts({ blockedDomains: ["example.com"] })).toEqual(["other.org"]);
  expect(await hosts({ allowedDomains: ["example.com"] }, { allowedDomains: ["other.org"] })).toEqual([]);
  expect(await hosts({}, { blockedDomains: ["docs.example.com"] })).toEqual(["other.org"]);
});

test.each([
  [{}, "invalid-input"],
  [{ query: "" }, "invalid-input"],
  [{ query: 7 }, "invalid-input"],
  [{ query: "x".repeat(1001) }, "query-too-long"],
])("the arguments %j fail, and nothing is asked", async (given, code) => {
  double = await searxngDouble(pages);
  expect(await search(given)).toMatchObject({ kind: "failure", code });
  expect(double.searches).toHaveLength(0);
});

test("a SearXNG that does not allow JSON is a failure, and the log says what it needs", async () => {
  double = await searxngDouble(pages, { allowsJson: false });
  const result = await search({ query: "q" });
  expect(result).toMatchObject({ kind: "failure", code: "unavailable", status: 403 });
  expect(JSON.stringify(result)).not.toContain("127.0.0.1");
  expect(lines).toEqual([
    "web_search failed: searxng answered with status 403: its settings.yml must have json in search.formats",
  ]);
});

test.each([
  ["too many requests", 429, "{}", "too-many-requests"],
  ["a status", 500, "{}", "unavailable"],
  ["a page", 200, "<html>", "unavailable"],
  ["another form", 200, '{"results":7}', "unavailable"],
  ["too much", 200, `{"results":[],"x":"${"x".repeat(5_000_000)}"}`, "unavailable"],
])("a search engine that answers with %s is a failure", async (_, status, body, code) => {
  double = await searxngDouble([], { answer: (response) => void response.writeHead(status).end(body) });
  expect(await search({ query: "q" })).toMatchObject({ kind: "failure", code });
});

test("a search engine that does not answer is given up with the signal", async () => {
  const controller = new AbortController();
  double = await searxngDouble([], { answer: () => controller.abort() });
  expect(await search({ query: "q" }, {}, {}, controller.signal)).toMatchObject({ kind: "failure" });
  double.close();
  expect(await search({ query: "q" })).toMatchObject({ kind: "failure", code: "unavailable" });
});
