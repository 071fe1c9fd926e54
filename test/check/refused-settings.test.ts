import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { type CheckRun, runCheck } from "../../src/judge/check/probe/run-check.ts";
import { prettyReport } from "../../src/judge/check/report/terminal.ts";
import { reportOf } from "../../src/judge/check/report/report-of.ts";
import { listen, type Listening } from "../support/listen.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { waitMs } from "../support/hang.ts";

// A model that takes no temperature, as OpenAI's reasoning models and Anthropic's newer ones do not, made every probe an error.

type Json = Record<string, unknown>;

/** What was sent, by path. */
const sent: { readonly path: string; readonly body: Json }[] = [];
let server: Listening;
let url: string;

/** How the vendors refuse it; undefined: they do not. */
function refusal(path: string, { temperature, max_tokens: limit }: Json): object | undefined {
  const type = "invalid_request_error";
  if (path.startsWith("/v1/messages")) {
    const error = { type, message: "`temperature` is deprecated for this model." };
    return temperature === undefined ? undefined : { type: "error", error, request_id: "req_1" };
  }
  const told = (message: string, param: string, code: string) => ({ error: { message, type, param, code } });
  if (temperature !== undefined)
    return told(
      `Unsupported value: 'temperature' does not support ${JSON.stringify(temperature)} with this model. Only the default (1) value is supported.`,
      "temperature",
      "unsupported_value",
    );
  return path.endsWith("/chat/completions") && limit !== undefined
    ? told(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens",
        "unsupported_parameter",
      )
    : undefined;
}

beforeAll(async () => {
  const handler = createHandler(serving(new ScriptedEngine(() => answer(["Hello", "."]))));
  server = await listen(async (incoming, outgoing) => {
    const path = incoming.url ?? "";
    const body = await text(incoming);
    const value = body === "" ? {} : (JSON.parse(body) as Json);
    sent.push({ path, body: value });
    const refused = refusal(path, value);
    const headers = incoming.headers as Record<string, string>;
    const method = incoming.method ?? "GET";
    const response = refused
      ? Response.json(refused, { status: 400, headers: { "x-request-id": "req_1", "request-id": "req_1" } })
      : await handler.fetch(new Request(`http://api.test${path}`, { method, headers, ...(body !== "" && { body }) }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(await response.text());
  });
  url = `${server.url}/v1`;
});
beforeEach(() => sent.splice(0));
afterAll(() => server.close());

const checked = (...only: string[]): Promise<CheckRun> =>
  runCheck({ url, model: "scripted", only, timeout: waitMs, concurrency: 2 });

function found({ judged }: CheckRun): string[] {
  return judged.flatMap(({ id, findings }) => findings.map(({ rule, found: what }) => `${id}: ${rule}: ${what}`));
}

test.each([
  [["text", "tools", "live/streams"], "the model refuses temperature: 0 (chat), so it was asked without"],
  [
    ["responses/text", "responses/stored", "responses/live/streams"],
    "the model refuses temperature: 0 (responses), so it was asked without",
  ],
  [["messages/text", "messages/stop"], "the model refuses temperature: 0 (messages), so it was asked without"],
])("%s: asked again without it, and the report says so", async (only, remark) => {
  const run = await checked(...only);
  // The engine obeys nobody, and counts the prompt at the end.
  expect(found(run).filter((one) => !/required|start-input/.test(one))).toEqual([]);
  expect(run.remarks).toContain(remark);
  expect(prettyReport(reportOf(url, run.judged, { remarks: run.remarks }))).toContain(`; ${remark}`);
  // Two probes run at once, so few were refused.
  expect(sent.filter(({ body }) => body.temperature !== undefined).length).toBeLessThan(4);
});

test("max_tokens, which OpenAI's reasoning models refuse, is sent as max_completion_tokens", async () => {
  const run = await checked("text");
  expect(run.remarks).toContain("the model refuses max_tokens (chat), so it was asked with max_completion_tokens");
  expect(sent.at(-1)?.body).toMatchObject({ max_completion_tokens: 64 });
});

// Learned by the first stream: no request came before it.
test("a stream that is opened to be left is asked for again, too", async () => {
  expect((await checked("live/second")).judged).toMatchObject([{ findings: [] }]);
  expect(sent.map(({ body }) => body.temperature)).toEqual([0, undefined, undefined, undefined]);
});

test("a temperature that is wrong is sent as it is", async () => {
  const run = await checked("wrong/temperature", "messages/wrong/temperature");
  expect(found(run).filter((one) => !one.includes("exact-status"))).toEqual([]);
  expect(run.remarks.filter((remark) => remark.includes("temperature"))).toEqual([]);
  expect(sent.map(({ body }) => body.temperature)).toEqual([3, 3, "warm", "warm", 3, 3]);
});
