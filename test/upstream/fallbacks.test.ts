import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { ModelEntry } from "../../src/serve/config/model-schema.ts";
import type { FallbackReason } from "../../src/wire/core/failure.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { keyOf } from "../keys/support.ts";
import { event, role, say, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

type Script = Parameters<typeof startScripted>[0];

async function upstream(script: Script): Promise<ScriptedServer> {
  const server = await startScripted(script);
  closeAfterTest(() => server.close());
  return server;
}

const answers = (text: string): Promise<ScriptedServer> => upstream((response, body) => say(response, body, text));
const fails = (status: number, error: object = { message: "broken" }): Promise<ScriptedServer> =>
  upstream((response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error })),
  );

type Upstream = Extract<ModelEntry, { kind: "upstream" }>;
const entry = (source: ScriptedServer, name: string, more: Partial<Upstream> = {}): Upstream => ({
  kind: "upstream",
  url: source.url,
  name: `${name}-server`,
  models: { [name]: name },
  retries: 0,
  ...more,
});

async function serve(models: readonly ModelEntry[], keys: readonly object[] = []) {
  const server = await createServer({ port: 0, logLevel: "silent", keys: keys as never, models });
  closeAfterTest(() => server.close(0));
  return server;
}

interface Answer {
  readonly status: number;
  readonly by: string | null;
  readonly text: string;
}

async function ask(server: { url: string }, more: object = {}, key?: string): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ model: "big", messages: [{ role: "user", content: "Hi" }], ...more }),
  });
  return { status: response.status, by: response.headers.get("x-truewire-model"), text: await response.text() };
}

describe.each([false, true])("before anything is shown, stream %s", (stream) => {
  test.each<[string, () => Promise<ScriptedServer>, FallbackReason, "by default" | "as configured"]>([
    ["a server's error", () => fails(503), "server-error", "by default"],
    ["a rate limit", () => fails(429), "rate-limit", "by default"],
    [
      "an unknown model",
      () => fails(404, { message: "no such model", code: "model_not_found" }),
      "not-found",
      "by default",
    ],
    [
      "a broken connection",
      () => upstream((response: ServerResponse) => response.destroy()),
      "connection",
      "as configured",
    ],
    [
      "a prompt that is too long",
      () =>
        fails(400, { message: "This model's maximum context length is 10 tokens.", code: "context_length_exceeded" }),
      "context-length",
      "as configured",
    ],
    ["a filter", () => fails(400, { message: "filtered", code: "content_filter" }), "content-filter", "as configured"],
    [
      "an answer that a filter emptied",
      () =>
        upstream((response, body) => {
          if (body["stream"] === true) return response.end(`${role}${event({}, "content_filter")}data: [DONE]\n\n`);
          const choices = [
            { index: 0, message: { role: "assistant", content: null }, finish_reason: "content_filter" },
          ];
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify({ id: "a", object: "chat.completion", created: 1, model: "big", choices }));
        }),
      "content-filter",
      "as configured",
    ],
  ])("%s: a model of another source answers, and its name is in a header", async (_, broken, reason, when) => {
    const small = await answers("from small");
    const big = await broken();
    const server = await serve([
      entry(big, "big", { fallbacks: ["small"], ...(when === "as configured" && { fallbackOn: [reason] }) }),
      entry(small, "small"),
    ]);
    const answer = await ask(server, { stream });
    expect(answer).toMatchObject({ status: 200, by: "small" });
    expect(answer.text.match(/from small/g)).toHaveLength(1);
    expect(small.requests.map(({ body }) => body["model"])).toEqual(["small"]);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    const counted = metrics.split("\n").filter((line) => line.startsWith("truewire_fallbacks_total{"));
    expect(counted).toEqual([`truewire_fallbacks_total{gen_ai_request_model="big",reason="${reason}"} 1`]);
  });

  test("a failure that is not configured goes to the client, and no fallback is asked", async () => {
    const small = await answers("from small");
    for (const [status, fallbackOn] of [
      [400, undefined],
      [401, undefined],
      [503, ["rate-limit"]],
    ] as const) {
      const server = await serve([
        entry(await fails(status), "big", { fallbacks: ["small"], ...(fallbackOn && { fallbackOn }) }),
        entry(small, "small"),
      ]);
      const answer = await ask(server, { stream });
      expect(answer).toMatchObject({ by: null });
      expect(answer.status).toBeGreaterThanOrEqual(400);
    }
    expect(small.requests).toHaveLength(0);
  });
});

test("after the first text there is no fallback: the client gets no text twice", async () => {
  const small = await answers("from small");
  const big = await upstream((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(role + event({ content: "Once upon" }), () => setImmediate(() => response.destroy()));
  });
  const server = await serve([entry(big, "big", { fallbacks: ["small"] }), entry(small, "small")]);
  const { text } = await ask(server, { stream: true });
  expect(text).toContain("Once upon");
  expect(text).not.toContain("from small");
  expect(small.requests).toHaveLength(0);
});

test("fallbacks are asked in order; if all fail, the client gets the first failure, and why no other model answered", async () => {
  const servers = [await fails(503), await fails(400, { message: "tools are not supported" }), await fails(500)];
  const [big, second, third] = servers as [ScriptedServer, ScriptedServer, ScriptedServer];
  const server = await serve([
    entry(big, "big", { fallbacks: { big: ["second", "third"] } }),
    entry(second, "second"),
    entry(third, "third"),
  ]);
  const answer = await ask(server);
  expect(answer.status).toBe(503);
  expect(answer.text).toContain("The fallback 'second' failed, too: tools are not supported");
  expect(answer.text).toContain("The fallback 'third' failed, too: broken");
  expect(servers.map(({ requests }) => requests.length)).toEqual([1, 1, 1]);
});

test("a model that cannot take the request is not asked, and the error says why", async () => {
  const server = await serve([
    entry(await fails(503), "big", { fallbacks: ["blind", "embedder"] }),
    {
      kind: "engine",
      engine: {
        models: () => [
          { id: "blind", created: 0, ownedBy: "test", takesImages: false, endpoints: ["chat"] },
          { id: "embedder", created: 0, ownedBy: "test", endpoints: ["embeddings"] },
        ],
        generate: () => {
          throw new Error("must not be asked");
        },
        health: () => ({ state: "ready" }),
        close: () => Promise.resolve(),
      },
    },
  ]);
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const answer = await ask(server, { messages: [{ role: "user", content: [image] }] });
  expect(answer.status).toBe(503);
  expect(answer.text).toContain("The fallback 'blind' was not asked: it takes no images.");
  expect(answer.text).toContain("The fallback 'embedder' was not asked: it does not support chat.");
});

test("a key that may not use a fallback does not get its answers", async () => {
  const ann = keyOf("ann");
  const small = await answers("from small");
  const server = await serve(
    [entry(await fails(503), "big", { fallbacks: ["small"] }), entry(small, "small")],
    [{ ...ann.entry, models: ["big"] }],
  );
  expect(await ask(server, {}, ann.key)).toMatchObject({ status: 503, by: null });
  expect(small.requests).toHaveLength(0);
});
