import type { HostedToolOptions, SearchResult } from "../../wire/core/hosted-tool.ts";
import { isObject } from "../../wire/core/json.ts";
import { hostOfRule } from "./domains.ts";

/** A query, for any search engine. */
export interface SearchQuery extends Pick<HostedToolOptions, "allowedDomains" | "blockedDomains" | "userLocation"> {
  readonly query: string;
  readonly maxResults: number;
}

/** The request that asks a search engine. */
export interface SearchRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Absent: a GET request. */
  readonly body?: string;
}

/** How a search engine is asked, and what its answers are. Both are pure. */
export interface SearchEngine {
  /** `url`: where it is; `key`: "" if none is configured. */
  request(query: SearchQuery, url: string, key: string): SearchRequest;
  /** Reads an answer tolerantly: what is not a result is left out. Throws an Error with a reason for what is no answer. */
  read(answer: unknown): readonly SearchResult[];
  /** What an HTTP status means there, if that is a mistake of the configuration. */
  readonly hints?: Readonly<Record<number, string>>;
  /** Absent: it is where the configuration says. */
  readonly url?: string;
}

/** More domains make a query that engines refuse; the results are filtered anyway. */
const maxSites = 10;

/**
 * SearXNG's JSON form, which its settings must allow. Source: searxng/searxng at 9fea4120 (2026-08-22), `searx/webutils.py`,
 * `get_json_response`, and `searx/result_types/_base.py`, `MainResult`; docs/dev/search_api.rst.
 */
const searxng: SearchEngine = {
  request: ({ query, userLocation, ...rules }, url) => ({
    url: withQuery(`${url.replace(/\/+$/, "").replace(/\/search$/, "")}/search`, {
      q: withSites(query, rules),
      format: "json",
      ...languageOf(userLocation?.country),
    }),
    headers: { accept: "application/json" },
  }),
  read: (answer) =>
    listIn(answer, "results").flatMap((result) => {
      const { publishedDate } = result;
      return one(result["url"], result["title"], [result["content"]], dateInWords(publishedDate));
    }),
  hints: { 403: "its settings.yml must have json in search.formats" },
};

/** Source: https://api-dashboard.search.brave.com/app/documentation/web-search, query parameters, headers and responses. */
const brave: SearchEngine = {
  url: "https://api.search.brave.com/res/v1/web/search",
  request({ query, maxResults, userLocation: { city, region, country, timezone } = {}, ...rules }, url, key) {
    const near = {
      "x-loc-city": city,
      "x-loc-state-name": region,
      "x-loc-country": country,
      "x-loc-timezone": timezone,
    };
    return {
      url: withQuery(url, {
        q: withSites(query, rules),
        count: String(Math.min(20, maxResults)),
        extra_snippets: "true",
        text_decorations: "false",
        ...(country !== undefined && { country }),
      }),
      headers: { accept: "application/json", "x-subscription-token": key, ...headersOf(near) },
    };
  },
  read(answer) {
    const web = isObject(answer) ? answer["web"] : undefined;
    // An answer without pages has no `web`.
    if (web === undefined && isObject(answer) && answer["type"] === "search") return [];
    return listIn(web, "results").flatMap((result) => {
      const extra = Array.isArray(result["extra_snippets"]) ? (result["extra_snippets"] as unknown[]) : [];
      const age = typeof result["age"] === "string" ? result["age"] : dateInWords(result["page_age"]);
      return one(result["url"], result["title"], [result["description"], ...extra], age);
    });
  },
  hints: { 401: "its key is wrong", 422: "its key is wrong or missing" },
};

/** Source: https://docs.tavily.com/documentation/api-reference/endpoint/search. */
const tavily: SearchEngine = {
  url: "https://api.tavily.com/search",
  request({ query, maxResults, allowedDomains, blockedDomains, userLocation }, url, key) {
    const country = countryName(userLocation?.country);
    return {
      url,
      headers: { accept: "application/json", "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({
        query,
        max_results: Math.min(20, maxResults),
        ...(allowedDomains && { include_domains: hostsOf(allowedDomains) }),
        ...(blockedDomains && { exclude_domains: hostsOf(blockedDomains) }),
        ...(country !== undefined && { country }),
      }),
    };
  },
  read: (answer) =>
    listIn(answer, "results").flatMap((result) =>
      one(
        result["url"],
        result["title"],
        [result["raw_content"] ?? result["content"]],
        dateInWords(result["published_date"]),
      ),
    ),
  hints: { 401: "its key is wrong or missing" },
};

export const searchEngines = { searxng, brave, tavily };
export type SearchEngineName = keyof typeof searchEngines;

function one(
  url: unknown,
  title: unknown,
  texts: readonly unknown[],
  age: string | undefined,
): readonly SearchResult[] {
  if (typeof url !== "string" || !URL.canParse(url)) return [];
  const text = texts.filter((each) => typeof each === "string" && each !== "").join("\n");
  return [{ url, title: typeof title === "string" ? title : "", text, ...(age !== undefined && { age }) }];
}

function listIn(value: unknown, member: string): readonly Readonly<Record<string, unknown>>[] {
  const list = isObject(value) ? value[member] : undefined;
  if (!Array.isArray(list)) throw new Error(`its answer has no list of ${member}`);
  return list.filter(isObject);
}

function withQuery(url: string, parameters: Readonly<Record<string, string>>): string {
  const whole = new URL(url);
  for (const [name, value] of Object.entries(parameters)) whole.searchParams.set(name, value);
  return whole.href;
}

/** The query with the operators that most engines know: without them, few of their results might be of allowed domains. */
function withSites(
  query: string,
  { allowedDomains = [], blockedDomains = [] }: Pick<HostedToolOptions, "allowedDomains" | "blockedDomains">,
): string {
  const sites = hostsOf(allowedDomains).map((host) => `site:${host}`);
  const allowed = sites.length > maxSites ? "" : sites.length > 1 ? `(${sites.join(" OR ")})` : (sites[0] ?? "");
  const blocked = hostsOf(blockedDomains)
    .slice(0, maxSites)
    .map((host) => `-site:${host}`);
  return [query, allowed, ...blocked].filter((part) => part !== "").join(" ");
}

function hostsOf(rules: readonly string[]): readonly string[] {
  return [...new Set(rules.flatMap((rule) => hostOfRule(rule) ?? []))];
}

/** SearXNG has languages with a region, and no places: the language that most people of the country read. */
function languageOf(country: string | undefined): Readonly<Record<string, string>> {
  if (country === undefined || !/^[a-z]{2}$/i.test(country)) return {};
  const { language } = new Intl.Locale(`und-${country}`).maximize();
  return language === "und" ? {} : { language: `${language}-${country.toUpperCase()}` };
}

function countryName(country: string | undefined): string | undefined {
  if (country === undefined || !/^[a-z]{2}$/i.test(country)) return undefined;
  return new Intl.DisplayNames("en", { type: "region" }).of(country.toUpperCase())?.toLowerCase();
}

/** Headers have no characters beyond ASCII. */
function headersOf(values: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value !== undefined && /^[ -~]+$/.test(value) ? [[name, value]] : [],
    ),
  );
}

/** A date as a page shows it (`April 30, 2026`); undefined for what is none. */
function dateInWords(value: unknown): string | undefined {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) return undefined;
  return new Date(time).toLocaleDateString("en-US", {
    year: "numeric",
    month: "long",
    day: "numeric",
    timeZone: "UTC",
  });
}
