import { describe, expect, test } from "vitest";
import { searchEngines } from "./search-engines.ts";

const { searxng, brave, tavily } = searchEngines;
const query = { query: "release notes", maxResults: 8 };
const near = { city: "München", region: "Bavaria", country: "DE", timezone: "Europe/Berlin" };

function parameters(url: string): Record<string, string> {
  return Object.fromEntries(new URL(url).searchParams);
}

describe("SearXNG", () => {
  test.each(["http://127.0.0.1:8888", "http://127.0.0.1:8888/", "http://127.0.0.1:8888/search"])(
    "at %s is asked for JSON",
    (url) => {
      const asked = searxng.request(query, url, "");
      expect(asked.url).toBe("http://127.0.0.1:8888/search?q=release+notes&format=json");
      expect(asked.body).toBeUndefined();
    },
  );

  test("is asked for allowed domains, and in the language of the user's country", () => {
    const rules = { allowedDomains: ["example.com", "https://docs.example.org/guide"], blockedDomains: ["spam.net"] };
    expect(parameters(searxng.request({ ...query, ...rules, userLocation: near }, "http://s", "").url)).toEqual({
      q: "release notes (site:example.com OR site:docs.example.org) -site:spam.net",
      format: "json",
      language: "de-DE",
    });
    const many = { allowedDomains: Array.from({ length: 50 }, (_, at) => `d${at}.com`) };
    expect(parameters(searxng.request({ ...query, ...many }, "http://s", "").url)["q"]).toBe("release notes");
  });

  test("is read with the date in words; what is no result is left out", () => {
    const results = [
      { url: "https://example.com/", title: "Example", content: "A text", publishedDate: "2026-04-30T10:00:00" },
      { url: "https://example.com/2", title: null, content: 7, publishedDate: "yesterday" },
      { url: 7 },
      { url: "not a URL" },
      null,
    ];
    expect(searxng.read({ results })).toEqual([
      { url: "https://example.com/", title: "Example", text: "A text", age: "April 30, 2026" },
      { url: "https://example.com/2", title: "", text: "" },
    ]);
    for (const wrong of [{}, null, [], "text", { results: {} }])
      expect(() => searxng.read(wrong)).toThrow("its answer has no list of results");
  });
});

describe("Brave", () => {
  test("is asked with the key and the place in headers", () => {
    const asked = brave.request({ ...query, maxResults: 50, userLocation: near }, brave.url ?? "", "key-1");
    expect(asked.headers).toMatchObject({
      "x-subscription-token": "key-1",
      "x-loc-country": "DE",
      "x-loc-timezone": "Europe/Berlin",
    });
    // A header cannot have it.
    expect(asked.headers).not.toHaveProperty("x-loc-city");
    expect(parameters(asked.url)).toMatchObject({ q: "release notes", count: "20", country: "DE" });
  });

  test("is read with its own age and its further texts", () => {
    const result = {
      url: "https://a.com/",
      title: "A",
      description: "one",
      extra_snippets: ["two", 3],
      age: "3 days ago",
    };
    const text = "one\ntwo";
    expect(brave.read({ type: "search", web: { results: [result] } })).toEqual([
      { url: "https://a.com/", title: "A", text, age: "3 days ago" },
    ]);
    expect(brave.read({ type: "search" })).toEqual([]);
    expect(() => brave.read({ type: "ErrorResponse" })).toThrow("no list of results");
  });
});

describe("Tavily", () => {
  test("is asked for domains and the country by its name", () => {
    const rules = { allowedDomains: ["example.com/docs"], blockedDomains: ["spam.net"] };
    const asked = tavily.request({ ...query, ...rules, userLocation: { country: "us" } }, tavily.url ?? "", "tvly-1");
    expect(asked.headers).toMatchObject({ authorization: "Bearer tvly-1" });
    expect(JSON.parse(asked.body ?? "")).toEqual({
      query: "release notes",
      max_results: 8,
      include_domains: ["example.com"],
      exclude_domains: ["spam.net"],
      country: "united states",
    });
  });

  test("is read", () => {
    const results = [
      {
        url: "https://a.com/",
        title: "A",
        content: "text",
        score: 0.9,
        published_date: "Thu, 30 Apr 2026 08:00:00 GMT",
      },
    ];
    expect(tavily.read({ results })).toEqual([
      { url: "https://a.com/", title: "A", text: "text", age: "April 30, 2026" },
    ]);
  });
});
