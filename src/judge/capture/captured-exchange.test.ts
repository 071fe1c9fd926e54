import { expect, test } from "vitest";
import { maskedPath } from "./captured-exchange.ts";

// Only five names were known: the signature of a signed URL was recorded as it was.
test.each([
  ["/v1/chat?sig=a%2Fb&api-version=1", "/v1/chat?sig=[key]&api-version=1"],
  ["/v1/chat?a=1&key=x", "/v1/chat?a=1&key=[key]"],
  ["/v1/chat?X-Amz-Signature=x&X-Amz-Credential=y", "/v1/chat?X-Amz-Signature=[key]&X-Amz-Credential=[key]"],
  ["/v1/chat?code=x&access_token=y&client_secret=z", "/v1/chat?code=[key]&access_token=[key]&client_secret=[key]"],
  ["/v1/chat?%73ig=x&password=y#z", "/v1/chat?%73ig=[key]&password=[key]#z"],
  ["/v1/responses?limit=20&after=a&order=asc", "/v1/responses?limit=20&after=a&order=asc"],
  ["/v1/responses?include=code_interpreter&encoding=x&%=1", "/v1/responses?include=code_interpreter&encoding=x&%=1"],
])("%s is recorded as %s", (path, masked) => {
  expect(maskedPath(path)).toBe(masked);
  expect(maskedPath(masked)).toBe(masked);
});
