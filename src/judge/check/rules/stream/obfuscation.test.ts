import { expect, test } from "vitest";
import { judgeCapture } from "../../check-capture.ts";
import { obfuscate } from "../../../../wire/apis/chat/chat-envelope.ts";

const json =
  '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":';

function chunk(delta: string, finish: string): string {
  return `${json}${delta},"finish_reason":${finish}}]`;
}

function stream(...chunks: readonly string[]): string {
  return [...chunks, "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
}

function found(body: string): readonly string[] {
  const { findings } = judgeCapture("capture", body);
  return findings.filter(({ rule }) => rule === "stream/obfuscation").map((finding) => finding.found);
}

const random = () => 0.5;
const role = obfuscate(chunk('{"role":"assistant","content":""}', "null"), random);
const end = obfuscate(chunk("{}", '"stop"'), random);

test("what the writer pads has the right length, also with characters beyond ASCII and beyond the basic plane", () => {
  for (const text of ["a", "ab", "日本", "🦙", "🦙🦙🦙", '"\\n"', ""]) {
    const middle = obfuscate(chunk(`{"content":${JSON.stringify(text)}}`, "null"), random);
    expect(found(stream(role, middle, end))).toEqual([]);
  }
});

test("UTF-16 units are accepted as characters, since no recording decides it", () => {
  const bare = chunk('{"content":"🦙"}', "null");
  const padding = (16 - ((bare.length + 1) % 16)) % 16;
  expect(found(stream(role, `${bare},"obfuscation":"${"x".repeat(padding)}"}`, end))).toEqual([]);
});

test("another length, other characters, another type, and a chunk without are reported", () => {
  const wrong = role.replace(/"obfuscation":"/, '"obfuscation":"x');
  expect(found(stream(wrong, end))).toHaveLength(1);
  expect(found(stream(role.replace(/"obfuscation":"[^"]*"/, '"obfuscation":"-_-"'), end))).toEqual([
    'obfuscation is "-_-"',
  ]);
  expect(found(stream(role.replace(/"obfuscation":"[^"]*"/, '"obfuscation":null'), end))).toEqual([
    "obfuscation is null",
  ]);
  expect(found(stream(`${chunk('{"role":"assistant"}', "null")}}`, end))).toEqual(["a chunk without obfuscation"]);
});

test("a stream without any has nothing to show", () => {
  const { shown } = judgeCapture("capture", stream(`${chunk('{"role":"assistant"}', "null")}}`));
  expect(shown).not.toContain("stream/obfuscation");
});
