import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { InspectedRequest } from "../../judge/inspect/inspected-request.ts";
import { curlOf, curlProblem, editProblem, jsonMistake, ownHeaders, resendProblem } from "./resend.ts";

const url = "http://127.0.0.1:8080/v1/chat/completions";

function requestOf(
  more: Partial<InspectedRequest>,
  request: Partial<InspectedRequest["request"]> = {},
): InspectedRequest {
  return {
    id: "req_1",
    number: 1,
    at: 0,
    ms: 1,
    method: "POST",
    path: "/v1/chat/completions",
    outcome: "finished",
    request: { headers: [["content-type", "application/json"]], body: { text: '{"model":"m"}' }, ...request },
    prompts: [],
    written: [],
    events: { chunks: [] },
    response: { headers: [], body: { chunks: [] } },
    asked: [],
    ...more,
  };
}

/** The arguments that bash gives to curl, and what curl would read. */
function runBash(command: string): { readonly args: string[]; readonly input: string } {
  // Arguments are separated by null characters, which none of them can have.
  const script = `curl() { printf '%s\\0' "$@"; printf '\\1'; [ "\${!#}" = @- ] && cat; true; }\n${command}`;
  const output = execFileSync("bash", ["--norc"], {
    input: script,
    encoding: "utf8",
    env: { LC_ALL: "C.UTF-8", TRUEWIRE_API_KEY: "sk-of-the-variable" },
    maxBuffer: 2 ** 26,
  });
  const end = output.indexOf("\u0001", output.lastIndexOf("\0"));
  return { args: output.slice(0, end).split("\0").slice(0, -1), input: output.slice(end + 1) };
}

test("bash gives curl every body as it was", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom("'", '"', "\\", "\n", "\r", "\t", "$HOME", "`id`", "!", "é", "😀", "\u0080", "EOF\n", " "))
      .map((parts) => parts.join("")),
  );
  fc.assert(
    // The mark of this test's own curl, and the null character, which no argument can have.
    fc.property(text, (body) => {
      fc.pre(!body.includes("\0") && !body.includes("\u0001") && !/\p{Cs}/u.test(body));
      const { args } = runBash(curlOf(requestOf({}, { body: { text: body } }), url));
      expect(args.at(-1)).toBe(body);
      expect(args.at(-2)).toBe("--data-raw");
      expect(args).toContain(url);
    }),
    { numRuns: 60 },
  );
});

// Linux limits an argument to 128 KiB: "Argument list too long".
test("a body that is too long for an argument is piped, to the letter", () => {
  const body = JSON.stringify({ text: "'é\\\n\u0007".repeat(100_000) });
  const { args, input } = runBash(curlOf(requestOf({}, { body: { text: body } }), url));
  expect(args.slice(-2)).toEqual(["--data-binary", "@-"]);
  expect(input).toBe(body);
});

test("keys are read from a variable, other secrets and the connection's headers are left out", () => {
  const headers = [
    ["host", "localhost"],
    ["authorization", "Bearer [key]"],
    ["x-api-key", "[key]"],
    ["cookie", "[key]"],
    ["content-length", "13"],
    ["anthropic-version", "2023-06-01"],
    ["content-type", "application/json"],
  ] as const;
  const request = requestOf({}, { headers });
  const { args } = runBash(curlOf(request, url));
  expect(args.filter((_, at) => args[at - 1] === "-H")).toEqual([
    "authorization: Bearer sk-of-the-variable",
    "x-api-key: sk-of-the-variable",
    "anthropic-version: 2023-06-01",
    "content-type: application/json",
  ]);
  expect(ownHeaders(request).map(([name]) => name)).toEqual(["anthropic-version", "content-type"]);
});

// curl says that a body is a form where no content type is named; the server refused what it had accepted before.
test("a request without a content type has none again", () => {
  expect(runBash(curlOf(requestOf({}, { headers: [] }), url)).args).toContain("content-type:");
});

test("a GET has no body and no method", () => {
  const { body: _, ...request } = requestOf({ method: "GET" }).request;
  const { args } = runBash(curlOf({ ...requestOf({ method: "GET" }), request }, url));
  expect(args).toEqual(["-sS", "-N", url, "-H", "content-type: application/json"]);
});

test("what cannot be sent again says why", () => {
  const problems = (request: InspectedRequest): unknown[] => [resendProblem(request), editProblem(request)];
  expect(problems(requestOf({}))).toEqual([undefined, undefined]);
  const socket = requestOf({}, { headers: [["sec-websocket-version", "13"]] });
  expect(resendProblem(socket)).toMatch(/WebSocket/);
  expect(resendProblem(requestOf({}, { body: { text: "{", left_out: 10 } }))).toMatch(/too long/);
  expect(resendProblem(requestOf({ brief: true }))).toMatch(/not kept/);
  const form = requestOf({}, { headers: [["content-type", "multipart/form-data; boundary=x"]] });
  expect(resendProblem(form)).toMatch(/form/);
  expect(problems(requestOf({}, { body: { text: "no JSON" } }))).toEqual([undefined, "Its body is not JSON."]);
  expect(curlProblem(requestOf({}, { body: { text: "a\0b" } }))).toMatch(/null character/);
});

test("a mistake in JSON has its line and column", () => {
  expect(jsonMistake('{\n  "model": "m",\n}')).toBe("line 3, column 1: expected a name in double quotes, found }");
  expect(jsonMistake('{"model":"m"}')).toBeUndefined();
});
