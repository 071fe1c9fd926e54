import { describe, expect, test } from "vitest";
import type { CapturedExchange } from "./captured-exchange.ts";
import { ExchangeFinder } from "./exchange-finder.ts";

const path = "/v1/chat/completions";

function capture(from: string, body: unknown): CapturedExchange {
  const request = { method: "POST", path, ...(body !== undefined && { body: JSON.stringify(body) }) };
  return { from, request, response: { status: 200, headers: [], pieces: [] } };
}

function found(finder: ExchangeFinder, body: unknown, at = path): string {
  const one = finder.find({ method: "POST", path: at, body: JSON.stringify(body) });
  return typeof one === "string" ? one : one.from;
}

describe("the answer to a request", () => {
  const hello = { model: "m", messages: [{ role: "user", content: "Hello" }] };
  const bye = { model: "m", messages: [{ role: "user", content: "Bye" }], stream: true };

  test("is that of the same request, in whatever order its members come", () => {
    const finder = new ExchangeFinder([capture("1", hello), capture("2", bye)]);
    expect(found(finder, { stream: true, messages: bye.messages, model: "m" })).toBe("2");
    expect(found(finder, hello, "/chat/completions")).toBe("1");
  });

  test("is the next one where the same was asked again, and the last one from then on", () => {
    const finder = new ExchangeFinder([capture("1", hello), capture("2", hello)]);
    expect([1, 2, 3, 4].map(() => found(finder, hello))).toEqual(["1", "2", "2", "2"]);
  });

  test("is any that shows no request, where none that shows one fits", () => {
    const finder = new ExchangeFinder([capture("any", undefined), capture("1", hello)]);
    expect(found(finder, hello)).toBe("1");
    expect(found(finder, bye)).toBe("any");
  });

  test("is a sentence about the nearest one where there is none", () => {
    const finder = new ExchangeFinder([capture("a:1", hello), capture("a:2", bye)]);
    expect(found(finder, { ...bye, messages: [{ role: "user", content: "Good bye" }] })).toBe(
      'No capture has this request. The nearest one (a:2) differs at messages[0].content: expected "Bye", received "Good bye".',
    );
    expect(found(finder, { ...hello, seed: 1 })).toContain("(a:1) differs at seed: expected nothing, received 1.");
    expect(found(finder, { ...hello, model: "x".repeat(100) })).toContain(`received "${"x".repeat(79)}….`);
    expect(found(finder, hello, "/v1/responses")).toBe(
      "No capture has POST /v1/responses. The captures have: POST /v1/chat/completions.",
    );
  });

  test("does not depend on a key in the query, which no recording holds", () => {
    const finder = new ExchangeFinder([
      {
        ...capture("1", hello),
        request: { method: "POST", path: `${path}?key=[key]&x=1`, body: JSON.stringify(hello) },
      },
    ]);
    expect(found(finder, hello, `${path}?key=secret&x=1`)).toBe("1");
  });
});
