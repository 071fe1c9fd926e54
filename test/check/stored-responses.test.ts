import { createServer as createHttpServer, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { createHandler } from "../../src/server.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import { type CheckRun, runCheck } from "../../src/judge/check/probe/run-check.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { waitMs } from "../support/hang.ts";
import { listen } from "../support/listen.ts";

// `truewire check` over servers that keep responses, that keep none, and that do one thing of it wrong.

type Json = Record<string, unknown>;

/** A request as it reaches a server. */
interface Asked {
  readonly method: string;
  readonly path: string;
  body: Json | undefined;
}

/** What a server does in place of answering as it should; undefined: it answers so. `ask` is the right answer to any request. */
type Fault = (
  asked: Asked,
  ask: (asked: Asked) => Promise<Response>,
) => Response | Promise<Response | undefined> | undefined;

const scenarios = [
  "responses/stored",
  "responses/unstored",
  "responses/background",
  "responses/compact",
  "responses/conversation",
];
const closing: (() => Promise<unknown>)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  return Promise.all(closing.splice(0).map((close) => close()));
});

/** It counts words. */
const engine = (): ScriptedEngine =>
  new ScriptedEngine((request) =>
    answer(["Hello", "."], { usage: { promptTokens: words(request), completionTokens: 2 } }),
  );

function words({ prompt }: GenerationRequest): number {
  return JSON.stringify(prompt).split(" ").length;
}

async function opened(server: Server): Promise<string> {
  const { url, close } = await listen(server);
  closing.push(close);
  return `${url}/v1`;
}

/** A server with a fault. */
async function faulty(fault: Fault): Promise<string> {
  const handler = createHandler(serving(engine()));
  closing.push(() => handler.close(0));
  const ask = ({ method, path, body }: Asked): Promise<Response> =>
    handler.fetch(
      new Request(`http://api.test${path}`, {
        method,
        ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
      }),
    );
  return opened(
    createHttpServer(async (incoming, outgoing) => {
      const sent = await text(incoming);
      const asked = {
        method: incoming.method ?? "GET",
        path: incoming.url ?? "",
        body: sent === "" ? undefined : (JSON.parse(sent) as Json),
      };
      const response = (await fault(asked, ask)) ?? (await ask(asked));
      outgoing.writeHead(response.status, { "content-type": "application/json" });
      outgoing.end(await response.text());
    }),
  );
}

async function checked(url: string, only: readonly string[] = scenarios): Promise<CheckRun> {
  return runCheck({ url, model: "scripted", only, timeout: waitMs, concurrency: 1 });
}

function brokenIn({ judged }: CheckRun): string[] {
  const rules = judged.flatMap(({ findings }) => findings.map(({ rule }) => rule));
  return [...new Set(rules)].filter((rule) => /^(stored|socket)\//.test(rule));
}

function reasonsIn({ judged }: CheckRun): Record<string, string> {
  return Object.fromEntries(judged.flatMap(({ id, notShown }) => (notShown === undefined ? [] : [[id, notShown]])));
}

const refusal = (status: number): Response =>
  Response.json({ error: { message: "No.", type: "invalid_request_error", param: null, code: null } }, { status });

const isOne = ({ method, path }: Asked): boolean => method === "GET" && /^\/v1\/responses\/[^/]+$/.test(path);

test("Truewire keeps responses: all is shown, by WebSocket, too, and nothing found", async () => {
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine()) });
  closing.push(() => server.close(0));
  const run = await checked(`${server.url}/v1`, [...scenarios, "responses/socket"]);
  expect(run.judged.flatMap(({ findings }) => findings.map(({ rule, found }) => `${rule}: ${found}`))).toEqual([]);
  expect(reasonsIn(run)).toEqual({});
  const shown = new Set(run.judged.flatMap((judged) => judged.shown));
  for (const rule of [
    "shown",
    "input-items",
    "continued",
    "deleted",
    "not-kept",
    "background",
    "compacted",
    "conversation",
  ])
    expect(shown).toContain(`stored/${rule}`);
  for (const rule of ["json", "error", "continued", "unknown"]) expect(shown).toContain(`socket/${rule}`);
});

test.each([true, false])(
  "Truewire's lanes and steering, where the model has them (%s): nothing is found but that lanes are missing in the exact profile",
  async (offered) => {
    for (const profile of ["lean", "exact"] as const) {
      const source = engine();
      // A model that says what it has used has lanes.
      if (offered) Object.assign(source.handlers, { usage: async () => null });
      const server = await createServer({ port: 0, logLevel: "silent", wire: profile, ...serving(source) });
      closing.push(() => server.close(0));
      const run = await runCheck({
        url: `${server.url}/v1`,
        model: "scripted",
        only: ["responses/lanes"],
        timeout: waitMs,
        concurrency: 1,
        profile,
      });
      // OpenAI has lanes for every model.
      const missing = offered || profile === "lean" ? [] : ['socket/lanes: refused: "unsupported_parameter"'];
      const found = run.judged.flatMap(({ findings }) => findings.map(({ rule, found }) => `${rule}: ${found}`));
      expect(found).toEqual(missing);
      const shown = new Set(run.judged.flatMap((judged) => judged.shown));
      for (const rule of ["lane-queue", "lane-limit", "lane-id"]) expect(shown.has(`socket/${rule}`)).toBe(offered);
      expect(shown).toContain("socket/steer");
    }
  },
);

/** A server with WebSocket that answers each message by itself, as it would POST. `edit` changes its messages. */
async function withoutLanes(edit: (event: string, body: Json) => string | undefined): Promise<string> {
  const url = await faulty(() => undefined);
  const server = createHttpServer();
  const sockets = new WebSocketServer({ server });
  closing.push(async () => sockets.close());
  sockets.on("connection", (line) => {
    line.on("message", async (message: Buffer) => {
      const body = JSON.parse(message.toString()) as Json;
      const { type, stream_id: _, ...rest } = body;
      if (type !== "response.create") return;
      const response = await fetch(`${url}/responses`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...rest, stream: true }),
      });
      for (const [, event = ""] of (await response.text()).matchAll(/^data: (\{.*)$/gm)) {
        const edited = edit(event, body);
        if (edited !== undefined) line.send(edited);
      }
    });
  });
  return opened(server);
}

test("a server without lanes is accused of nothing, unless the exact profile is demanded", async () => {
  const url = await withoutLanes((event) => event);
  const run = await checked(url, ["responses/lanes"]);
  expect(brokenIn(run)).toEqual([]);
  expect(reasonsIn(run)["responses/lanes"]).toBe(
    "no lanes are offered by WebSocket (no event has a stream_id); steering is not offered by WebSocket (there is no answer)",
  );
  const demanded = await runCheck({
    url,
    model: "scripted",
    only: ["responses/lanes"],
    timeout: waitMs,
    concurrency: 1,
    profile: "exact",
  });
  expect(brokenIn(demanded)).toEqual(expect.arrayContaining(["socket/lanes", "socket/steer"]));
});

test("a server that mixes its lanes, and knows no limits, is found out", async () => {
  const url = await withoutLanes((event, { stream_id: lane }) => {
    const value = JSON.parse(event) as Json;
    const isNamed = lane !== undefined && value["type"] !== "response.completed";
    return JSON.stringify({ ...value, ...(isNamed && { stream_id: lane }) });
  });
  const run = await checked(url, ["responses/lanes"]);
  expect(brokenIn(run)).toEqual(expect.arrayContaining(["socket/lanes", "socket/lane-id", "socket/lane-limit"]));
});

// A server that keeps nothing is legal: one sentence, no error.
test("a server without state is told so, in one sentence", async () => {
  const url = await faulty((asked) =>
    asked.path !== "/v1/responses" || asked.body?.previous_response_id !== undefined
      ? refusal(404)
      : asked.body?.background === true
        ? refusal(400)
        : undefined,
  );
  const run = await checked(url, [...scenarios, "responses/socket"]);
  expect(brokenIn(run)).toEqual([]);
  expect(reasonsIn(run)).toEqual({
    "responses/stored": "the server stores no responses: none can be retrieved, continued or deleted",
    "responses/background": "background is refused (status 400)",
    "responses/compact": "histories are not compacted (status 404)",
    "responses/conversation": "the server keeps no conversations",
    "responses/socket": expect.stringMatching(/^no WebSocket is offered \(status 40\d\)$/),
  });
});

test("a server that continues responses and shows none: what it has is judged, the rest is told", async () => {
  const url = await faulty((asked) => (asked.path === "/v1/responses" ? undefined : refusal(404)));
  const run = await checked(url, ["responses/stored"]);
  expect(brokenIn(run)).toEqual([]);
  expect(reasonsIn(run)["responses/stored"]).toBe(
    "a stored response is not shown (status 404); input items are not listed (status 404); a stored response is not deleted (status 404)",
  );
  expect(run.judged.at(-1)?.shown).toEqual(["stored/continued"]);
});

describe("what servers do wrong", () => {
  test.each<[rule: string, what: string, fault: Fault]>([
    [
      "stored/continued",
      "previous_response_id is taken and ignored (mlx-vlm #1046)",
      (asked, ask) => {
        if (asked.body?.previous_response_id === undefined) return undefined;
        const { previous_response_id: _, ...body } = asked.body;
        return ask({ ...asked, body });
      },
    ],
    [
      "stored/shown",
      "what is shown has no output",
      async (asked, ask) => {
        const response = isOne(asked) ? await ask(asked) : undefined;
        return response?.ok ? Response.json({ ...((await response.json()) as Json), output: [] }) : response;
      },
    ],
    [
      "stored/input-items",
      "the list of input items is empty",
      ({ path }) =>
        path.endsWith("/input_items")
          ? Response.json({ object: "list", data: [], first_id: null, last_id: null, has_more: false })
          : undefined,
    ],
    [
      "stored/deleted",
      "what was deleted stays",
      ({ method, path }) =>
        method === "DELETE"
          ? Response.json({ id: path.split("/").at(-1), object: "response", deleted: true })
          : undefined,
    ],
    [
      "stored/not-kept",
      "store: false is ignored",
      (asked, ask) =>
        asked.body?.store === false ? ask({ ...asked, body: { ...asked.body, store: true } }) : undefined,
    ],
    [
      "stored/background",
      "GET shows the beginning for ever (praxis-proxy/ai #560)",
      async (asked, ask) => {
        const response = isOne(asked) ? await ask(asked) : undefined;
        const value = response?.ok ? ((await response.json()) as Json) : undefined;
        if (value?.background !== true) return undefined;
        // The check asks until its time-out has passed. The test waited for it: five minutes.
        const now = performance.now() + waitMs;
        vi.spyOn(performance, "now").mockReturnValue(now);
        return Response.json({ ...value, status: "in_progress", output: [] });
      },
    ],
    [
      "stored/conversation",
      "conversation is taken and ignored",
      (asked, ask) => {
        if (asked.body?.conversation === undefined) return undefined;
        const { conversation: _, ...body } = asked.body;
        return ask({ ...asked, body });
      },
    ],
    [
      "stored/compacted",
      "a compaction is not taken back",
      ({ body }) => (JSON.stringify(body ?? {}).includes('"type":"compaction"') ? refusal(400) : undefined),
    ],
  ])("%s: %s", async (rule, _, fault) => {
    expect(brokenIn(await checked(await faulty(fault)))).toEqual([rule]);
  });

  test("by WebSocket: [DONE], what was said is forgotten, an error without its status and code", async () => {
    const url = await faulty(() => undefined);
    const server = createHttpServer();
    const sockets = new WebSocketServer({ server });
    sockets.on("connection", (line) => {
      line.on("message", async (message: Buffer) => {
        const { type: _, previous_response_id: previous, ...body } = JSON.parse(message.toString()) as Json;
        if (String(previous).endsWith("0000")) return line.send('{"type":"error","error":{"message":"No."}}');
        const response = await fetch(`${url}/responses`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ ...body, stream: true }),
        });
        const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => data);
        // The end comes last, so that its client reads what is before it.
        for (const event of [...events.slice(0, -2), "[DONE]", ...events.slice(-2, -1)]) line.send(event);
      });
    });
    const run = await checked(await opened(server), ["responses/socket"]);
    expect(brokenIn(run).toSorted()).toEqual(["socket/continued", "socket/error", "socket/json", "socket/unknown"]);
    sockets.close();
  });
});
