import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { judgeCapture } from "../../src/judge/check/check-capture.ts";
import { runTruewire } from "../support/serve.ts";
import { listen, type Listening } from "../support/listen.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { legalMessageBody, legalMessageStream } from "./legal/messages.ts";
import { times } from "../support/runs.ts";

// `truewire check` over servers with and without the Messages API, and over captures of it.

const folder = mkdtempSync(join(tmpdir(), "truewire-messages-"));
const seen: IncomingMessage[] = [];

/** `/anthropic/v1/…` has the Messages API alone and wants its key in x-api-key; `/openai/v1/…` has everything but it. */
let server: Listening;
let url: string;

beforeAll(async () => {
  const handler = createHandler({
    models: [{ kind: "engine", engine: new ScriptedEngine(() => answer(["Hello", "."])) }],
  });
  server = await listen((incoming, outgoing) => {
    seen.push(incoming);
    const path = incoming.url ?? "";
    const [, vendor] = path.split("/");
    const rest = path.slice(`/${vendor}`.length);
    const isOwn = rest.startsWith("/v1/messages") || rest.startsWith("/v1/models");
    incoming.url = rest;
    if (vendor === "openai" && !rest.startsWith("/v1/messages")) return handler(incoming, outgoing);
    if (vendor === "anthropic" && isOwn && incoming.headers["x-api-key"] === "secret")
      return handler(incoming, outgoing);
    outgoing.writeHead(vendor === "anthropic" && isOwn ? 401 : 404, { "content-type": "text/plain" });
    outgoing.end("no");
  });
  ({ url } = server);
});
beforeEach(() => seen.splice(0));
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

const check = (args: string[], env: Record<string, string> = {}): ReturnType<typeof runTruewire> =>
  runTruewire(["check", ...args], { env: { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", ...env } });

interface Printed {
  model: string;
  exchanges: { id: string }[];
  rules: { id: string; status: string; severity: string }[];
}

describe("--only messages", () => {
  test("asks nothing but the Messages API, with its headers and key", async () => {
    const only = ["--only", "messages", "--format", "json"];
    const { stdout } = await check([`${url}/anthropic/v1`, ...only], { ANTHROPIC_API_KEY: "secret" });
    const { model, exchanges, rules } = JSON.parse(stdout) as Printed;
    expect(model).toBe("scripted");
    expect(exchanges.length).toBeGreaterThan(50);
    expect(exchanges.map(({ id }) => id).filter((id) => !/^(same\/)?messages\//.test(id))).toEqual([]);
    const headers = seen.map((request) => request.headers);
    expect(
      new Set(headers.map((one) => [one["anthropic-version"], one["x-api-key"], one.authorization].join())),
    ).toEqual(new Set(["2023-06-01,secret,", "2026-10-21,secret,"]));
    // The script says the same to everything; the form is right nevertheless.
    const broken = rules
      .filter(({ status, severity }) => status === "broken" && severity !== "note")
      .map(({ id }) => id);
    expect(broken).toEqual(["messages/required", "messages/json"]);
  });

  test("one group of them by its beginning", async () => {
    const { stdout } = await check([
      `${url}/anthropic/v1`,
      "--key",
      "secret",
      "--only",
      "messages/text",
      "--format",
      "json",
    ]);
    const { exchanges } = JSON.parse(stdout) as Printed;
    expect(exchanges.map(({ id }) => id)).toEqual(["messages/text", "messages/text/stream", "same/messages/text"]);
  });

  test("without a key: which one is missing", async () => {
    const { code, stderr } = await check([`${url}/anthropic/v1`, "--only", "messages"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/--key or in ANTHROPIC_API_KEY/);
  });

  test("a server that has no such API breaks it", async () => {
    const { code, stdout } = await check([`${url}/openai/v1`, "--only", "messages/text"]);
    expect(code).toBe(1);
    expect(stdout).toContain("answer/status");
  });
});

// Most servers speak OpenAI's API alone.
test("without --only, a server without the Messages API is not asked for it", async () => {
  const { stdout } = await check([`${url}/openai/v1`, "--format", "json"]);
  const { exchanges, rules } = JSON.parse(stdout) as Printed;
  expect(exchanges.map(({ id }) => id).filter((id) => /^(same\/)?messages\//.test(id))).toEqual([]);
  expect(rules.filter(({ id, status }) => id.startsWith("messages/") && status === "broken")).toEqual([]);
  expect(exchanges.length).toBeGreaterThan(60);
});

describe("a capture", () => {
  const capture = join(folder, "message.sse");
  const { exchange } = legalMessageStream(1);
  beforeAll(() => writeFileSync(capture, exchange.response.body));

  test("of a message is known by its events: 0", async () => {
    const { code, stdout } = await check(["--file", capture]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/0 errors, 0 warnings, 0 notes, \d+ rules passed/);
  });

  test("that is broken: 1, and the place is shown", async () => {
    writeFileSync(join(folder, "broken.sse"), exchange.response.body.replace(/event: message_stop[^]*$/, ""));
    const { code, stdout } = await check(["--file", join(folder, "broken.sse")]);
    expect(code).toBe(1);
    expect(stdout).toContain("messages/message-stop");
    expect(stdout).not.toContain("end/done");
  });

  test("every stream and body of the API is known as such", () => {
    for (let seed = 0; seed < times(80); seed++) {
      for (const { exchange: one } of [legalMessageStream(seed), legalMessageBody(seed)]) {
        const { exchange: read, findings } = judgeCapture("capture", one.response.body);
        expect(read?.endpoint, one.response.body.slice(0, 200)).toBe(
          one.response.status >= 400 ? "messages" : one.endpoint,
        );
        expect(findings).toEqual([]);
      }
    }
  });

  // It was judged as an answer of the chat API: six errors.
  test("a line of a batch's results is judged as its message", () => {
    let judged = 0;
    for (let seed = 0; seed < 50; seed++) {
      const { exchange: one } = legalMessageBody(seed);
      if (one.endpoint !== "messages" || one.response.status !== 200) continue;
      const result = { type: "succeeded", message: JSON.parse(one.response.body) as unknown };
      const { exchange: read, findings } = judgeCapture("capture", `${JSON.stringify({ custom_id: "0", result })}\n`);
      expect([read?.endpoint, findings]).toEqual(["messages", []]);
      judged++;
    }
    expect(judged).toBeGreaterThan(5);
  });
});
