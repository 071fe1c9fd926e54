import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { createFetchHandler } from "../../src/fetch.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { startTruewire } from "../support/serve.ts";
import { transports } from "../support/transports.ts";

// The ids of responses and conversations came from Math.random, whose further results can be computed from a few ids of one's own, so that
// a client could read what another one had stored. Tests compared the form of ids, never where their digits come from.

type Ask = (path: string, body: unknown) => Promise<Response>;

/** Asks every API that gives ids, whole and as a stream, and returns all ids of the answers and their headers. */
async function idsOf(ask: Ask): Promise<string[]> {
  const messages = [{ role: "user", content: "Hi" }];
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
  const requests: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ["/v1/chat/completions", { messages, tools }],
    ["/v1/completions", { prompt: "Hi" }],
    ["/v1/messages", { messages, max_tokens: 9 }],
    ["/v1/responses", { input: "Hi" }],
    ["/v1/conversations", {}],
    ["/v1/nowhere", {}],
  ];
  const texts: string[] = [];
  for (const [path, body] of requests) {
    for (const stream of path === "/v1/conversations" ? [undefined] : [false, true]) {
      const answer = await ask(path, { model: "program", ...body, stream });
      texts.push(
        `"${answer.headers.get("x-request-id") ?? answer.headers.get("request-id") ?? ""}"`,
        await answer.text(),
      );
    }
  }
  const ids = texts.join("\n").match(/"(chatcmpl-|cmpl-|msg_|resp_|conv_|req_|call_|toolu_)[0-9A-Za-z]{12,}"/g) ?? [];
  return [...new Set(ids)];
}

function expectEveryKind(ids: readonly string[]): void {
  const kinds = new Set(ids.map((id) => id.slice(1, id.search(/[-_]/))));
  expect([...kinds].toSorted()).toEqual(["call", "chatcmpl", "cmpl", "conv", "msg", "req", "resp"]);
}

const folder = mkdtempSync(join(tmpdir(), "truewire-ids-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const program = join(folder, "program.mjs");
writeFileSync(
  program,
  `export default async function* ({ tools }) {
    yield "Hello";
    if (tools?.length) yield { type: "tool-call", name: "f", arguments: {} };
  }`,
);

// Threads load it, too.
const preload = join(folder, "preload.mjs");
writeFileSync(
  preload,
  `Math.random = () => {
    process.stderr.write("Math.random" + new Error().stack);
    return 0.25;
  };`,
);

afterEach(() => void vi.restoreAllMocks());

const portable = {
  name: "createHandler of truewire/fetch",
  open: async (config: TruewireConfig) => {
    const handler = createFetchHandler(config);
    return {
      fetch: (path: string, init?: RequestInit) => handler.fetch(new Request(`http://api.test${path}`, init)),
      close: () => handler.close(0),
    };
  },
};

test.each([...transports, portable])("no id of $name comes from Math.random", async ({ open }) => {
  const callers: string[] = [];
  vi.spyOn(Math, "random").mockImplementation(() => {
    callers.push(new Error("called").stack ?? "");
    return 0.25;
  });
  const api = await open({
    models: [
      {
        kind: "program",
        name: "program",
        program: async function* ({ tools }) {
          yield "Hello";
          if (tools?.length) yield { type: "tool-call", name: "f", arguments: {} };
        },
      },
    ],
  });
  closeAfterTest(() => api.close());
  const ask: Ask = (path, body) =>
    api.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const ids = await idsOf(ask);
  expectEveryKind(ids);
  expect(callers.filter((stack) => /\/(src|dist)\//.test(stack))).toEqual([]);
});

test("no id of `truewire serve` comes from Math.random", async () => {
  const server = await startTruewire([program], { env: { NODE_OPTIONS: `--import ${preload}` } });
  closeAfterTest(() => server.stop());
  const ask: Ask = (path, body) =>
    fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const ids = await idsOf(ask);
  expectEveryKind(ids);
  const calls = server.stderr().split("Math.random").slice(1);
  expect(calls.filter((stack) => /\/(src|dist)\//.test(stack))).toEqual([]);
});
