import { expect, test } from "vitest";
import { isAllowed } from "./domains.ts";

test.each([
  ["https://example.com/", "example.com", true],
  ["https://docs.example.com/a?b=c", "example.com", true],
  ["https://notexample.com/", "example.com", false],
  ["https://example.com.evil.net/", "example.com", false],
  ["https://evil.net/example.com", "example.com", false],
  ["https://evil.net/?example.com", "example.com", false],
  ["https://example.com@evil.net/", "example.com", false],
  ["https://EXAMPLE.com/", "Example.COM", true],
  ["https://example.com./", "example.com", true],
  ["https://example.com:8443/", "example.com", true],
  ["https://example.com/", "docs.example.com", false],
  ["https://example.com/", "https://example.com", true],
  ["https://example.com/blog/post", "example.com/blog", true],
  ["https://example.com/blog", "example.com/blog", true],
  ["https://example.com/blogger", "example.com/blog", false],
  ["https://example.com/blog?page=2", "example.com/blog", true],
  ["https://example.com/a/../blog/x", "example.com/blog", true],
  ["https://example.com/blog/../admin", "example.com/blog", false],
  ["https://example.com/en/articles/1", "example.com/*/articles", true],
  ["https://example.com/en/other", "example.com/*/articles", false],
  ["https://example.com/anything", "example.com/", true],
  ["https://münchen.example/", "xn--mnchen-3ya.example", true],
  ["https://xn--mnchen-3ya.example/", "münchen.example", true],
  // The first letter is Cyrillic.
  ["https://аmazon.com/", "amazon.com", false],
  ["https://0x7f.1/", "127.0.0.1", true],
  ["ftp://example.com/", "example.com", false],
  ["javascript:alert(1)//example.com", "example.com", false],
  ["no address", "example.com", false],
  ["https://example.com/", "", false],
  ["https://example.com/", "*", false],
])("%s, of the domain %s: %s", (address, rule, expected) => {
  expect(isAllowed(address, { allowedDomains: [rule] })).toBe(expected);
  if (expected) expect(isAllowed(address, { blockedDomains: [rule] })).toBe(false);
});

test("all rules must allow an address; blocked domains win, and no allowed domain allows nothing", () => {
  const address = "https://docs.example.com/";
  expect(isAllowed(address)).toBe(true);
  expect(isAllowed(address, {}, { blockedDomains: ["other.com"] })).toBe(true);
  expect(isAllowed(address, { allowedDomains: ["example.com"] }, { allowedDomains: ["other.com"] })).toBe(false);
  expect(isAllowed(address, { allowedDomains: ["example.com"], blockedDomains: ["docs.example.com"] })).toBe(false);
  expect(isAllowed(address, { allowedDomains: [] })).toBe(false);
});
