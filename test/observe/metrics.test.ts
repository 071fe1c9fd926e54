import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { answer, asked, failed, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import { chat, json, serving, transports } from "../support/transports.ts";
import { event, finish, startScripted } from "../upstream/scripted-server.ts";
import { keyOf } from "../keys/support.ts";
import { readExposition, total } from "./read-metrics.ts";
import type { Exposition } from "./read-metrics.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

async function serve(config: TruewireConfig): Promise<TruewireServer> {
  const server = await createServer({ port: 0, logLevel: "silent", ...config });
  closeAfterTest(() => server.close(0));
  return server;
}

async function numbersOf(
  { url }: { url: string },
  headers: Readonly<Record<string, string>> = {},
): Promise<Exposition> {
  const response = await fetch(`${url}/metrics`, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return readExposition(await response.text());
}

const duration = "gen_ai_server_request_duration_seconds";
const usage = { promptTokens: 7, completionTokens: 3, promptDetails: { cached_tokens: 4 } };

describe("requests", () => {
  const engine = new ScriptedEngine(async function* (request, signal) {
    if (asked(request) === "fail") yield [failed("engine-error", { status: 503 })];
    else if (asked(request) === "wait") {
      await once(signal, "abort");
      yield* answer([]);
    } else {
      for (const batch of answer(["a", "b", "c"], { usage })) {
        yield batch;
        await sleep(2);
      }
    }
  });

  test("are counted by model, API and outcome, with their tokens and times", async () => {
    const server = await serve(serving(engine));
    const post = async (path: string, init: RequestInit): Promise<string> =>
      (await fetch(`${server.url}${path}`, init)).text();
    await post("/v1/chat/completions", chat("hi", { stream: true }));
    await post("/chat/completions", chat("hi"));
    await post("/v1/completions", json({ model: "scripted", prompt: "hi" }));
    await post("/v1/responses", json({ model: "scripted", input: "hi", stream: true }));
    await post("/v1/messages", json({ model: "scripted", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }));
    await post("/v1/chat/completions", chat("fail"));
    await post("/v1/chat/completions", chat("hi", { n: 0 }));
    const leaving = new AbortController();
    const left = fetch(`${server.url}/v1/chat/completions`, { ...chat("wait"), signal: leaving.signal });
    left.catch(() => {});
    await until(() => engine.running === 1, "it waits");
    leaving.abort();
    await until(() => engine.running === 0, "it has left");
    const model = "scripted";
    await until(
      async () => total(await numbersOf(server), `${duration}_count`, { outcome: "cancelled" }) === 1,
      "all are counted",
    );

    const numbers = await numbersOf(server);
    const count = (labels: Readonly<Record<string, string>>): number => total(numbers, `${duration}_count`, labels);
    expect(count({ api: "chat", gen_ai_request_model: model, outcome: "finished" })).toBe(2);
    expect(count({ api: "completions", gen_ai_operation_name: "text_completion", outcome: "finished" })).toBe(1);
    for (const api of ["responses", "messages"])
      expect(count({ api, gen_ai_operation_name: "chat", gen_ai_provider_name: "truewire", error_type: "" })).toBe(1);
    expect(count({ outcome: "failed", error_type: "unavailable" })).toBe(1);
    expect(count({ outcome: "refused", error_type: "invalid-request" })).toBe(1);
    expect(count({ outcome: "cancelled", error_type: "cancelled" })).toBe(1);
    expect(count({})).toBe(8);
    const tokens = (type: string): number =>
      total(numbers, "gen_ai_client_token_usage_sum", { gen_ai_token_type: type });
    expect([tokens("input"), tokens("output")]).toEqual([35, 15]);
    expect(total(numbers, "truewire_cached_input_tokens_total", { gen_ai_request_model: model })).toBe(20);
    expect(total(numbers, "gen_ai_server_time_to_first_token_seconds_count")).toBe(5);
    expect(total(numbers, "gen_ai_server_time_per_output_token_seconds_count")).toBe(5);
    const pace = total(numbers, "gen_ai_server_time_per_output_token_seconds_sum") / 5;
    expect(pace).toBeGreaterThan(0.0005);
    expect(total(numbers, "truewire_slots")).toBe(8);
    expect(total(numbers, "truewire_engine_ready", { engine: model })).toBe(1);
    expect(total(numbers, "process_resident_memory_bytes")).toBeGreaterThan(1e6);
    expect(total(numbers, "truewire_open_requests")).toBe(1);
  });

  test("for models that there are not make no label, whatever they are called", async () => {
    const server = await serve({ models: [{ kind: "engine", engine, aliases: ["gpt-*"] }] });
    for (let i = 0; i < 20; i++) {
      const named = chat("hi", { model: `no-such-${i}` });
      expect((await fetch(`${server.url}/v1/chat/completions`, named)).status).toBe(404);
      expect((await fetch(`${server.url}/v1/chat/completions`, chat("hi", { model: `gpt-${i}` }))).status).toBe(200);
    }
    const numbers = await numbersOf(server);
    const models = new Set(numbers.samples.map(({ labels }) => labels["gen_ai_request_model"] ?? ""));
    expect(models).toEqual(new Set(["", "scripted"]));
    expect(total(numbers, `${duration}_count`, { gen_ai_request_model: "", outcome: "refused" })).toBe(20);
    expect(total(numbers, `${duration}_count`, { gen_ai_request_model: "scripted" })).toBe(20);
  });

  test("that are no answers of a model are not among them", async () => {
    const server = await serve(serving(engine));
    for (const path of ["/health", "/v1/models", "/nowhere", "/metrics"]) await fetch(`${server.url}${path}`);
    await fetch(`${server.url}/v1/chat/completions`);
    expect(total(await numbersOf(server), `${duration}_count`)).toBe(0);
  });

  test("that go on in the background are counted once, with their tokens", async () => {
    const server = await serve(serving(engine));
    const asking = json({ model: "scripted", input: "hi", background: true });
    const { id } = (await (await fetch(`${server.url}/v1/responses`, asking)).json()) as { id: string };
    await until(async () => {
      const shown = (await (await fetch(`${server.url}/v1/responses/${id}`)).json()) as { status: string };
      return shown.status === "completed";
    }, "it is completed");
    const numbers = await numbersOf(server);
    expect(total(numbers, `${duration}_count`, { api: "responses", outcome: "finished" })).toBe(1);
    expect(total(numbers, "gen_ai_client_token_usage_sum", { gen_ai_token_type: "input" })).toBe(7);
  });
});

describe("other servers", () => {
  test("are told of: retries, repairs, URLs that are out of service", async () => {
    // Its stream has no end mark.
    const works = await startScripted((response) => response.end(event({ role: "assistant", content: "Hi" }) + finish));
    const broken = await startScripted((response) => response.writeHead(500).end("{}"));
    closeAfterTest(works.close);
    closeAfterTest(broken.close);
    const server = await serve({
      models: [{ kind: "upstream", name: "up", url: [broken.url, works.url], models: ["m"], retries: 5 }],
    });
    for (let i = 0; i < 10; i++)
      await (await fetch(`${server.url}/v1/chat/completions`, chat("hi", { model: "m", stream: true }))).text();
    const numbers = await numbersOf(server);
    expect(total(numbers, "truewire_upstream_retries_total", { engine: "up" })).toBeGreaterThan(0);
    expect(total(numbers, "truewire_upstream_urls", { engine: "up" })).toBe(2);
    expect(total(numbers, "truewire_upstream_urls_ejected", { engine: "up" })).toBe(1);
    expect(total(numbers, "truewire_repairs_total", { gen_ai_request_model: "m", repair: "no-done" })).toBe(10);
    expect(numbers.types.get("truewire_repairs_total")).toBe("counter");
  });
});

describe("who may read the numbers", () => {
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  const bearer = (key: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${key}` });
  const status = async ({ url }: TruewireServer, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
    (await fetch(`${url}/metrics`, { headers })).status;

  test("everybody, on a server without keys", async () => {
    expect(await status(await serve(serving(engine)))).toBe(200);
  });

  test("those with a key, on one with keys", async () => {
    const server = await serve({ ...serving(engine), apiKey: ["sk-first-key", "sk-second-key"] });
    expect(await status(server)).toBe(401);
    expect(await status(server, bearer("sk-third-key"))).toBe(401);
    expect(await status(server, bearer("sk-second-key"))).toBe(200);
  });

  test("those whose key is for all models, where keys have names; the numbers tell who used what", async () => {
    const all = keyOf("alice");
    const some = keyOf("bob", { models: ["scripted"], tokensPerMinute: 1000 });
    const server = await serve({ ...serving(engine), keys: [all.entry, some.entry] });
    for (const { key } of [all, some, some]) {
      const init = chat("hi", { stream: true });
      const headers = { ...(init.headers as Record<string, string>), ...bearer(key) };
      await (await fetch(`${server.url}/v1/chat/completions`, { ...init, headers })).text();
    }
    expect(await status(server, bearer(some.key))).toBe(403);
    const numbers = await numbersOf(server, bearer(all.key));
    expect(total(numbers, `${duration}_count`, { key: "alice" })).toBe(1);
    expect(total(numbers, `${duration}_count`, { key: "bob", outcome: "finished" })).toBe(2);
    expect(total(numbers, "gen_ai_client_token_usage_sum", { key: "bob", gen_ai_token_type: "output" })).toBe(2);
  });

  test("everybody, where they are open", async () => {
    expect(await status(await serve({ ...serving(engine), apiKey: "sk-first-key", metrics: "open" }))).toBe(200);
  });

  test("only those with a key for them, where there is one", async () => {
    const server = await serve({ ...serving(engine), apiKey: "sk-first-key", metricsKey: "for-the-numbers" });
    expect(await status(server)).toBe(401);
    // The refusal named the settings of clients' keys, which do not help here.
    const refused = await fetch(`${server.url}/metrics`, { headers: bearer("sk-first-key") });
    expect([refused.status, await refused.text()]).toEqual([
      401,
      expect.stringContaining("Metrics have keys of their own"),
    ]);
    expect(await status(server, bearer("for-the-numbers"))).toBe(200);
    const model = await fetch(`${server.url}/v1/models`, { headers: bearer("for-the-numbers") });
    expect(model.status).toBe(401);
    const withoutKeys = await serve({ ...serving(engine), metricsKey: "for-the-numbers" });
    expect(await status(withoutKeys)).toBe(401);
  });

  test("nobody, where they are off; a handler counts only where it is told to", async () => {
    const off = await serve({ ...serving(engine), metrics: "off" });
    const refused = await fetch(`${off.url}/metrics`);
    expect(refused.status).toBe(404);
    expect(await refused.text()).toContain("'metrics' is off");
    for (const { name, open } of transports.slice(1)) {
      for (const metrics of [undefined, "on"] as const) {
        const api = await open({ ...serving(engine), ...(metrics && { metrics }) });
        expect((await api.fetch("/metrics")).status, name).toBe(metrics ? 200 : 404);
        await api.close();
      }
    }
  });

  test("a key for the numbers changes without a restart, whether there are numbers does not", async () => {
    const lines: unknown[] = [];
    const note = (fields: object): void => void lines.push(fields);
    const log = { debug: () => {}, info: () => {}, warn: note, error: note };
    const server = await createServer({ ...serving(engine), port: 0, metricsKey: "old-key-1" }, { log });
    closeAfterTest(() => server.close(0));
    await server.reload({ ...serving(engine), port: 0, metricsKey: ["old-key-1", "new-key-2"], metrics: "off" });
    expect(await status(server, bearer("new-key-2"))).toBe(200);
    expect(lines).toEqual([{ settings: ["metrics"] }]);
  });
});
