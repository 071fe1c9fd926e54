import { expect, test } from "vitest";
import { Mask } from "../mask.ts";
import { maskedTape } from "./masked-tape.ts";
import { maskedHeaders } from "./masked-headers.ts";

const mask = new Mask(["sk-secret-0123456789"]);

test("a secret is masked however it is cut, and on its side of what was left out", () => {
  const pieces = ["data: sk-sec", "ret-012345", "6789!", " then"].map((text, ms) => ({ ms, text }));
  const left_out = { after: 3, pieces: 7, characters: 70 };
  expect(maskedTape({ pieces, left_out }, mask)).toEqual({
    tape: {
      pieces: [
        { ms: 0, text: "data: [key]!" },
        { ms: 3, text: " then" },
      ],
      left_out: { after: 1, pieces: 7, characters: 70 },
    },
    isChanged: true,
  });
});

test("without one, pieces stay as they are", () => {
  const tape = { pieces: [{ ms: 1, text: "data: sk-sec" }] };
  expect(maskedTape(tape, mask)).toEqual({ tape, isChanged: false });
});

test("headers that carry keys are masked, whoever's they are; those that tell of rates are not", () => {
  const headers = [
    ["Authorization", "Bearer sk-somebody"],
    ["x-api-key", "abc"],
    ["Cookie", "session=1"],
    ["Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-somebody"],
    ["x-ratelimit-remaining-tokens", "17"],
    ["x-note", "has sk-secret-0123456789 in it"],
    ["accept", "*/*"],
  ] as const;
  expect(maskedHeaders(headers, mask)).toEqual([
    ["Authorization", "Bearer [key]"],
    ["x-api-key", "[key]"],
    ["Cookie", "[key]"],
    ["Sec-WebSocket-Protocol", "[key]"],
    ["x-ratelimit-remaining-tokens", "17"],
    ["x-note", "has [key] in it"],
    ["accept", "*/*"],
  ]);
});
