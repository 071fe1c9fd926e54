import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, json, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

// One server, both forms: the request's header decides, before the model's setting and before the server's.

class EmbeddingEngine extends ScriptedEngine {
  override readonly handlers = { embed: async () => ({ vectors: [[0.5, 0.25]], promptTokens: 1 }) };
}

const engine = () => new EmbeddingEngine(() => answer(["Hi"]));

function wants(wire: string, init: RequestInit = {}): RequestInit {
  return { ...init, headers: { ...(init.headers as Record<string, string>), "X-Truewire-Wire": wire } };
}

async function textOf(api: Api, path: string, init: RequestInit): Promise<string> {
  return (await api.fetch(path, init)).text();
}

describe.each(transports)("X-Truewire-Wire through $name", ({ open }) => {
  const places: readonly [string, string, RequestInit][] = [
    ["a chat answer", "/v1/chat/completions", chat("Hello")],
    ["a completion", "/v1/completions", json({ model: "scripted", prompt: "x" })],
    ["embeddings", "/v1/embeddings", json({ model: "scripted", input: "x" })],
    ["the list of models", "/v1/models", {}],
    ["one model", "/v1/models/scripted", {}],
    ["a wrong request", "/v1/chat/completions", chat("Hello", { n: 0 })],
    ["wrong embeddings", "/v1/embeddings", json({ model: "scripted" })],
    ["an unknown model", "/v1/chat/completions", chat("Hello", { model: "nope" })],
    ["an unknown path", "/v1/nope", {}],
    ["a wrong method", "/v1/models", json({})],
    ["a body that is no JSON", "/v1/chat/completions", { ...chat(""), body: "{" }],
  ];

  test.each(places)("%s has the form that is asked for, whatever the server's is", async (_, path, init) => {
    const [lean, exact] = await Promise.all([open(serving(engine())), open(serving(engine(), { wire: "openai" }))]);
    const compact = /^\{"[^\n]*\}$/;
    const pretty = /^\{\n {2,4}"/;
    expect(await textOf(lean, path, init)).toMatch(compact);
    expect(await textOf(lean, path, wants("exact", init))).toMatch(pretty);
    expect(await textOf(exact, path, init)).toMatch(pretty);
    expect(await textOf(exact, path, wants("lean", init))).toMatch(compact);
    await Promise.all([lean.close(), exact.close()]);
  });

  test("streams and their headers have the form that is asked for", async () => {
    const api = await open(serving(engine()));
    const lean = await api.fetch("/v1/chat/completions", chat("Hello", { stream: true }));
    expect(lean.headers.get("cache-control")).toBe("no-cache");
    expect(await lean.text()).toContain('"delta":{"role":"assistant"}');
    const exact = await api.fetch("/v1/chat/completions", wants("exact", chat("Hello", { stream: true })));
    expect(exact.headers.get("cache-control")).toBeNull();
    const text = await exact.text();
    expect(text).toContain('"service_tier":"default"');
    expect(text).toContain('"delta":{"role":"assistant","content":"","refusal":null}');
    expect(text).toContain('"obfuscation":"');
    const old = json({ model: "scripted", prompt: "x", stream: true });
    const completion = await api.fetch("/v1/completions", wants("openai", old));
    expect(completion.headers.get("content-type")).toBe("text/event-stream");
    expect(await completion.text()).toMatch(/"choices":\[[^\]]*\],"model"/);
    await api.close();
  });

  test("the request is read by the rules of the form that is asked for", async () => {
    const api = await open(serving(engine()));
    const five = chat("Hello", { stop: ["1", "2", "3", "4", "5"] });
    expect((await api.fetch("/v1/chat/completions", five)).status).toBe(200);
    const refused = await api.fetch("/v1/chat/completions", wants("openai", five));
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "stop" } });
    await api.close();
  });

  test("it goes before the model's own setting, which goes before the server's", async () => {
    const api = await open({ wire: "lean", models: [{ kind: "engine", engine: engine(), wire: "openai" }] });
    expect(await textOf(api, "/v1/chat/completions", chat("Hello"))).toMatch(/^\{\n {2}"id"/);
    expect(await textOf(api, "/v1/models/scripted", {})).toMatch(/^\{\n {2}"id"/);
    expect(await textOf(api, "/v1/embeddings", json({ model: "scripted" }))).toMatch(/^\{\n {2}"error"/);
    expect(await textOf(api, "/v1/chat/completions", wants("lean", chat("Hello")))).toMatch(/^\{"id"/);
    await api.close();
  });

  test.each([["gold"], [""], ["lean, openai"], ["OPENAI"]])("%j is refused by name, on every path", async (value) => {
    const api = await open(serving(engine()));
    for (const [path, init] of [
      ["/v1/chat/completions", chat("Hello")],
      ["/v1/chat/completions", chat("Hello", { stream: true })],
      ["/v1/models", {}],
    ] as const) {
      const response = await api.fetch(path, wants(value, init));
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: Record<string, unknown> };
      expect(error).toEqual({
        message: `Invalid header 'X-Truewire-Wire'. Invalid value: '${value}'. Supported values are: 'lean' and 'exact'.`,
        type: "invalid_request_error",
        param: "X-Truewire-Wire",
        code: "invalid_value",
      });
    }
    await api.close();
  });
});

test("a page that may call may send it", async () => {
  const server = await createServer({ ...serving(engine()), port: 0, logLevel: "silent", corsOrigin: "*" });
  const preflight = (headers: Record<string, string>): Promise<Response> =>
    fetch(`${server.url}/v1/chat/completions`, { method: "OPTIONS", headers });
  const asked = await preflight({ "access-control-request-headers": "content-type,x-truewire-wire" });
  expect(asked.headers.get("access-control-allow-headers")).toBe("content-type,x-truewire-wire");
  const plain = await preflight({});
  expect(plain.headers.get("access-control-allow-headers")).toContain("x-truewire-wire");
  await server.close(0);
});
