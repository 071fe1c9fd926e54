import fc from "fast-check";
import { expect, test } from "vitest";
import { sourcePorts } from "../../src/wire/apis/ports.ts";
import { readResponseBody } from "../../src/wire/apis/tolerant/read-response.ts";
import { failureOfText, readFailure } from "../../src/wire/apis/tolerant/read-failure.ts";
import type { EndEvent, GenerationFailure } from "../../src/wire/core/events.ts";
import { internalError } from "../../src/wire/apis/failures.ts";
import { failureEnd } from "../../src/engines/program/program-failure.ts";
import { RequestRecord } from "../../src/serve/server/request-record.ts";

const secret = "sk-0123456789";

/** Texts that contain the secret, with line breaks and what looks like a stack. */
const foreign = fc
  .tuple(fc.string(), fc.constantFrom("", " ", "\n", "\n    at ", "Error: ", "ECONNRESET "), fc.string())
  .map(([before, mark, after]) => before + mark + secret + after);

const names = fc.constantFrom(
  "message",
  "code",
  "type",
  "param",
  "detail",
  "msg",
  "status",
  "error",
  "metadata",
  "loc",
);
const bodies: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    foreign,
    fc.constantFrom(429, 500, 503, "api_error", null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 5 }),
  ),
})).value;

/** The log line of a request that ended with this failure, and of one that was refused with it. */
function linesOf(failure: GenerationFailure): string {
  const end: EndEvent = { type: "end", end: { kind: "upstream-error", failure } };
  const [ended, refused] = [new RequestRecord(), new RequestRecord()];
  ended.answer.see([end]);
  Object.assign(refused.sent, { refusal: failure, cause: failure.cause });
  return JSON.stringify([ended.addFields({}), refused.addFields({})]);
}

test("no text of an upstream is logged, whatever the form of its error", () => {
  fc.assert(
    fc.property(bodies, fc.constantFrom(undefined, 400, 401, 429, 500, 503), (body, status) => {
      const failure = readFailure(body, status) ?? readFailure({ error: body }, status);
      if (failure) expect(linesOf(failure)).not.toContain(secret);
      expect(linesOf(failureOfText(JSON.stringify(body) + secret, status))).not.toContain(secret);
    }),
    { numRuns: 2000 },
  );
});

const members = fc.constantFrom("type", "status", "event", "response", "choices", "finish_reason", "output", "object");
const answers = fc.tuple(fc.dictionary(members, fc.oneof(foreign, bodies), { maxKeys: 4 }), bodies);

// A Responses answer with an unknown `status` was logged with it.
test.each(["chat", "responses", "messages", "gemini"] as const)(
  "no text of an answer that %s cannot read is logged",
  (api) => {
    fc.assert(
      fc.property(answers, fc.boolean(), foreign, ([body, other], isStream, name) => {
        const value = JSON.stringify(Object.keys(body).length > 0 ? body : other);
        const reader = sourcePorts[api].reader({ newCallId: () => "call_1", choices: 1 });
        const event = `event: ${name.replaceAll(/[\r\n]/g, "")}\ndata: ${value}\n\n`;
        const events = isStream ? [...reader.push(event), ...reader.end()] : readResponseBody(value, reader);
        for (const event of events) {
          if (event.type === "end" && "failure" in event.end) expect(linesOf(event.end.failure)).not.toContain(secret);
        }
      }),
      { numRuns: 1000, examples: [[[{ status: secret, object: "response" }, null], false, ""]] },
    );
  },
);

test("no text of a program is logged, whatever it throws", () => {
  class Custom extends Error {
    override name = secret;
    readonly code = secret;
  }
  const thrown = foreign.chain((text) =>
    fc.constantFrom<unknown>(
      text,
      { message: text, name: "RequestError", status: 503, code: text, param: text },
      { message: text, statusCode: 500 },
      new Error(text),
      new TypeError(text, { cause: new Error(text) }),
      new Custom(text),
      Object.assign(new Error(text), { name: text, code: text }),
      Object.assign(new Error("first"), { message: text }),
      Object.assign(new Error(text), { name: "RequestError", status: 500 }),
      Object.assign(new Error(text), { stack: `Error: other\n    at ${text}` }),
      Object.defineProperty(new Error(text), "message", { get: () => ({ text }) }),
      Object.defineProperty(new Error(text), "stack", { get: () => [text] }),
    ),
  );
  fc.assert(
    fc.property(thrown, fc.boolean(), (error, showErrors) => {
      const { end } = failureEnd(error, { requestId: "req_1", showErrors });
      if ("failure" in end) expect(linesOf(end.failure)).not.toContain(secret);
      expect(linesOf(internalError(error).failure)).not.toContain(secret);
    }),
    { numRuns: 1000 },
  );
});

test("a failure of this server is logged with its message, and where it was thrown", () => {
  const failure = internalError(Object.assign(new TypeError("the prompt"), { code: "ECONNRESET" })).failure;
  const lines = linesOf(failure);
  expect(lines).toContain("The server had an error while processing your request.");
  expect(lines).toMatch(/"cause":"TypeError \(ECONNRESET\)\\n +at .*foreign-texts\.test\.ts/);
  expect(lines).not.toContain("the prompt");
});
