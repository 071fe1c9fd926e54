import { request } from "undici";
import type { HostedCall, HostedFunction, HostedResult, SearchResult } from "../../wire/core/hosted-tool.ts";
import { type DomainRules, isAllowed } from "./domains.ts";
import { abandoned, type ExecutorSetup, failure, type OpenExecutor, OutputBudget, shown } from "./executor.ts";
import { type SearchEngineName, searchEngines, type SearchQuery } from "./search-engines.ts";

export interface WebSearchSetup extends ExecutorSetup, DomainRules {
  /** Asks for results; rejects with an Error whose message is for the log, or with `SearchRefusal`. */
  readonly search: (query: SearchQuery, call: HostedCall, signal: AbortSignal) => Promise<readonly SearchResult[]>;
  /** The most results of a search. */
  readonly maxResults: number;
}

/** A search engine refuses a query; the code and the message are for the client. */
class SearchRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A longer query is a text that the model has copied. In characters. */
const maxQuery = 1000;
const maxUrl = 2000;
const maxTitle = 300;
/** The largest answer of a search engine, in bytes. */
const maxAnswer = 4 * 1024 * 1024;
/** By `search_context_size`: how many results the model is shown, and how many characters of each. */
const amounts = {
  low: { results: 5, characters: 500 },
  medium: { results: 8, characters: 2000 },
  high: { results: 15, characters: 5000 },
};

const functions: readonly HostedFunction[] = [
  {
    name: "web_search",
    description:
      "Searches the web. Returns the pages that were found: title, URL, and a part of the text. Use it for what may have changed, and cite the URLs.",
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "What to search for" } },
      required: ["query"],
    },
    readOnly: true,
  },
];

export function openWebSearch(setup: WebSearchSetup): OpenExecutor {
  const { name, timeoutMs, maxCalls } = setup;
  return {
    name,
    kind: "web_search",
    timeoutMs,
    maxCalls,
    functions: async () => functions,
    run: (call, signal) => search(setup, call, signal),
    close: async () => {},
  };
}

async function search(setup: WebSearchSetup, call: HostedCall, signal: AbortSignal): Promise<HostedResult> {
  const { tool, arguments: given } = call;
  const { query } = given;
  if (typeof query !== "string" || query.trim() === "")
    return failure(
      "invalid-input",
      `Expected a text in query, such as {"query": "weather in Berlin"}, not ${shown(given)}.`,
    );
  if (query.length > maxQuery)
    return failure("query-too-long", `The query has ${query.length} characters; at most ${maxQuery} are searched for.`);
  const { allowedDomains, blockedDomains, userLocation, contextSize = "medium" } = tool.options;
  const amount = amounts[contextSize];
  const maxResults = Math.min(amount.results, setup.maxResults);
  const rules = { allowedDomains: allowedDomains ?? setup.allowedDomains, blockedDomains };
  let found: readonly SearchResult[];
  try {
    const near = {
      ...(rules.allowedDomains && { allowedDomains: rules.allowedDomains }),
      ...(userLocation && { userLocation }),
    };
    const asked = { query: query.trim(), maxResults, ...(blockedDomains && { blockedDomains }), ...near };
    found = await setup.search(asked, call, signal);
  } catch (error) {
    if (signal.aborted) return abandoned;
    const reason = error instanceof Error ? error.message : String(error);
    setup.log?.(`${setup.name} failed: ${reason}`, "warn");
    const { status } = error instanceof SearchRefusal ? error : {};
    return status === 429
      ? failure("too-many-requests", "The search engine refuses further requests for now.", 429)
      : failure("unavailable", "The search engine does not answer, or not with results.", status);
  }
  const budget = new OutputBudget(setup.maxOutput);
  const results: SearchResult[] = [];
  const seen = new Set<string>();
  for (const { url, title, text, age } of found) {
    if (results.length === maxResults || budget.isSpent) break;
    if (url.length > maxUrl || seen.has(url) || !isAllowed(url, setup, { allowedDomains, blockedDomains })) continue;
    seen.add(url);
    results.push({
      url,
      title: title.slice(0, maxTitle),
      text: budget.text(text.slice(0, amount.characters)),
      ...(age !== undefined && { age: age.slice(0, 100) }),
    });
  }
  return { kind: "search", results };
}

/** Searches by a search engine. `url`: absent for the vendor's own. */
export function engineSearch(
  engineName: SearchEngineName,
  { url, key = "" }: { readonly url?: string | undefined; readonly key?: string | undefined },
): WebSearchSetup["search"] {
  const engine = searchEngines[engineName];
  const at = url ?? engine.url ?? "";
  return async (query, _tool, signal) => {
    const asked = engine.request(query, at, key);
    const { statusCode, body } = await request(asked.url, {
      method: asked.body === undefined ? "GET" : "POST",
      headers: asked.headers,
      signal,
      ...(asked.body !== undefined && { body: asked.body }),
    });
    if (statusCode !== 200) {
      body.on("error", () => {}).destroy();
      const hint = engine.hints?.[statusCode];
      throw new SearchRefusal(statusCode, `${engineName} answered with status ${statusCode}${hint ? `: ${hint}` : ""}`);
    }
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of body as AsyncIterable<Uint8Array>) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > maxAnswer) throw new Error(`${engineName} sent more than ${maxAnswer} bytes`);
    }
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch (cause) {
      throw new Error(`${engineName} answered with what is not JSON: ${shown(text)}`, { cause });
    }
    return engine.read(answer);
  };
}
