import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { keyOf, recordingLog } from "../keys/support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { runTruewire } from "../support/serve.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";

const program = (name: string, aliases: readonly string[] = []) =>
  ({ kind: "program", name, aliases, program: () => `I am ${name}.` }) as const;
const models = [program("big", ["claude-*"]), program("small"), program("next")];

async function serve(config: Partial<TruewireConfig>, log = recordingLog()) {
  const server = await createServer({ port: 0, models, ...config }, { log: log.log });
  closeAfterTest(() => server.close(0));
  return { url: server.url, lines: log.lines, server };
}

const messages = [{ role: "user", content: "Hi" }];
const json = "application/json";

async function post(url: string, path: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": json, ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const by = /I am (\w+)\./.exec(text)?.[1];
  const header = (name: string): string | null => response.headers.get(name);
  return { status: response.status, text, by, rule: header("x-truewire-route"), model: header("x-truewire-model") };
}

const chat = (url: string, more: object = {}, headers: Record<string, string> = {}) =>
  post(url, "/v1/chat/completions", { model: "big", messages, ...more }, headers);

describe("a rule by the name of the model", () => {
  const routes = [{ name: "background", model: "claude-haiku-*", to: "small" }];

  test.each<[string, string, object]>([
    ["chat", "/v1/chat/completions", { messages }],
    ["chat, streamed", "/v1/chat/completions", { messages, stream: true }],
    ["completions", "/v1/completions", { prompt: "Hi" }],
    ["Responses", "/v1/responses", { input: "Hi" }],
    ["Responses, streamed", "/v1/responses", { input: "Hi", stream: true }],
    ["Messages", "/v1/messages", { max_tokens: 9, messages }],
    ["Ollama's chat", "/api/chat", { messages, stream: false }],
    ["Ollama's generate", "/api/generate", { prompt: "Hi", stream: false }],
  ])("routes a request of %s", async (_, path, body) => {
    const { url } = await serve({ routes });
    const model = "claude-haiku-4-5";
    expect(await post(url, path, { model, ...body })).toMatchObject({
      status: 200,
      by: "small",
      rule: "background",
      model: "small",
    });
    expect(await post(url, path, { model: "claude-opus-5", ...body })).toMatchObject({ by: "big", rule: null });
  });

  test("routes a request of Gemini, whose path names the model", async () => {
    const { url } = await serve({ routes });
    const path = "/v1beta/models/claude-haiku-4-5:generateContent";
    const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
    expect(await post(url, path, { contents })).toMatchObject({ status: 200, by: "small", rule: "background" });
  });

  test("applies to a name that no model has, and the lists of models stay as they are", async () => {
    const { url } = await serve({ routes: [{ model: "gpt-*", to: "small" }] });
    expect(await chat(url, { model: "gpt-9" })).toMatchObject({ status: 200, by: "small", rule: "rule-1" });
    expect(await chat(url, { model: "other" })).toMatchObject({ status: 404, rule: null });
    const listed = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id)).toEqual(["big", "small", "next"]);
  });

  test("has no effect on another rule: the first one decides, and its model is final", async () => {
    const { url } = await serve({
      routes: [
        { model: "big", to: "small" },
        { model: "small", to: "big" },
        { model: "big", to: "next" },
      ],
    });
    expect(await chat(url)).toMatchObject({ by: "small", rule: "rule-1" });
    expect(await chat(url, { model: "small" })).toMatchObject({ by: "big", rule: "rule-2" });
  });
});

describe("a rule by who asks", () => {
  const [alice, bob] = [keyOf("team-alice"), keyOf("bob")];
  const routes = [
    { name: "header", header: { "X-Team": "search-*", "x-kind": "batch" }, to: "small" },
    { name: "agent", agent: "claude-cli/*", model: "big", to: "next" },
    { name: "key", key: "team-*", to: "small" },
  ];
  const as = ({ key }: { key: string }, more: Record<string, string> = {}) => ({
    authorization: `Bearer ${key}`,
    ...more,
  });

  test("needs all of its conditions", async () => {
    const { url } = await serve({ routes, keys: [alice.entry, bob.entry] });
    expect(await chat(url, {}, as(bob))).toMatchObject({ by: "big", rule: null });
    expect(await chat(url, {}, as(alice))).toMatchObject({ by: "small", rule: "key" });
    expect(await chat(url, {}, as(bob, { "x-team": "search-eu" }))).toMatchObject({ by: "big" });
    expect(await chat(url, {}, as(bob, { "x-team": "search-eu", "x-kind": "batch" }))).toMatchObject({
      by: "small",
      rule: "header",
    });
    const agent = as(bob, { "user-agent": "claude-cli/2.1.332 (external, cli)" });
    expect(await chat(url, {}, agent)).toMatchObject({ by: "next", rule: "agent" });
    expect(await chat(url, { model: "small" }, agent)).toMatchObject({ by: "small", rule: null });
  });

  test("leaves out keys that may not use the model that is asked for, or the one that answers", async () => {
    const [any, asks, gets] = [
      keyOf("any"),
      keyOf("asks", { models: ["big", "claude-*"] }),
      keyOf("gets", { models: ["small"] }),
    ];
    const { url } = await serve({
      routes: [{ model: "big", to: "small" }],
      keys: [any.entry, asks.entry, gets.entry],
    });
    expect(await chat(url, {}, as(any))).toMatchObject({ by: "small" });
    expect(await chat(url, {}, as(asks))).toMatchObject({ status: 200, by: "big", rule: null, model: null });
    expect(await chat(url, {}, as(gets))).toMatchObject({ status: 404, rule: null });
  });
});

describe("a share", () => {
  const routes = [{ name: "canary", model: "big", to: "next", share: 0.25 }];
  const first = (at: number): object => ({ role: "user", content: `Question ${at}` });

  test("takes about its part of the conversations, and no conversation moves", async () => {
    const { url } = await serve({ routes });
    const firstTurns = await Promise.all(Array.from({ length: 200 }, (_, at) => chat(url, { messages: [first(at)] })));
    const taken = firstTurns.filter(({ by }) => by === "next").length;
    expect(taken).toBeGreaterThan(25);
    expect(taken).toBeLessThan(80);
    for (const [at, turn] of firstTurns.slice(0, 40).entries()) {
      const later = [first(at), { role: "assistant", content: turn.text }, { role: "user", content: "And now?" }];
      expect(await chat(url, { messages: later, stream: true })).toMatchObject({ by: turn.by, rule: turn.rule });
    }
  });

  test("that grows keeps the conversations that it has", async () => {
    const [before, after] = [
      await serve({ routes }),
      await serve({ routes: [{ ...routes[0], to: "next", share: 0.5 }] }),
    ];
    for (let at = 0; at < 60; at++) {
      const turn = { messages: [first(at)] };
      if ((await chat(before.url, turn)).by === "next") expect((await chat(after.url, turn)).by).toBe("next");
    }
  });

  test("of 0 takes nothing, of 1 everything, and what it leaves meets the next rule", async () => {
    const rest = { name: "rest", model: "big", to: "small" };
    for (const [share, by, rule] of [
      [0, "small", "rest"],
      [1, "next", "canary"],
    ] as const) {
      const { url } = await serve({ routes: [{ name: "canary", model: "big", to: "next", share }, rest] });
      expect(await chat(url)).toMatchObject({ by, rule });
    }
  });

  test("is a conversation's of Responses, also where the client sends only the new turn", async () => {
    const { url } = await serve({ routes });
    for (let at = 0; at < 20; at++) {
      const turn = await post(url, "/v1/responses", { model: "big", input: `Question ${at}` });
      const { id } = JSON.parse(turn.text) as { id: string };
      const next = { model: "big", input: "And now?", previous_response_id: id };
      expect((await post(url, "/v1/responses", next)).by).toBe(turn.by);
    }
  });
});

test("embeddings go to the model of a rule that makes some; a share and a model without them do not count", async () => {
  const embedding = (name: string) => {
    const engine = new ScriptedEngine(() => answer(["Hi"]), name);
    const handlers = { embed: async () => ({ vectors: [[name.length]], promptTokens: 1 }) };
    const models = () => [{ id: name, created: 0, endpoints: ["embeddings"], contextLength: null }];
    return { kind: "engine", engine: Object.assign(engine, { handlers, models }) } as never;
  };
  const { url } = await serve({
    models: [...models, embedding("e5"), embedding("e5-large")],
    routes: [
      { name: "canary", to: "e5", share: 1 },
      { name: "talks", to: "small" },
      { name: "embeds", model: "e5", to: "e5-large" },
    ],
  });
  const embed = await post(url, "/v1/embeddings", { model: "e5", input: "x" });
  expect(embed).toMatchObject({ status: 200, rule: "embeds", text: expect.stringContaining("[8]") as string });
});

test("the price, the log and Inspect are those of the model that answers", async () => {
  const { url, lines } = await serve({
    inspect: true,
    prices: { big: { input: 1_000_000, output: 1_000_000 }, small: "free" },
    routes: [{ name: "cheap", model: "big", to: "small" }],
  });
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": json },
    body: JSON.stringify({ model: "big", messages }),
  });
  expect(response.headers.get("x-truewire-cost")).toBe("0.00");
  expect(((await response.json()) as { model: string }).model).toBe("big");
  expect(lines.find(({ message }) => message === "finished")).toMatchObject({
    model: "big",
    route: "cheap",
    routedTo: "small",
    cost: 0,
  });
  const { requests } = (await (await fetch(`${url}/admin/requests`)).json()) as { requests: object[] };
  expect(requests[0]).toMatchObject({ model: "big", route: { rule: "cheap", model: "small" }, engine_model: "small" });
});

describe("a rule for a model that is not served", () => {
  test("ends the start with its line", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-"));
    closeAfterTest(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, "echo.mjs"), "export default () => 'Hi';\n");
    const lines = ["port: 0", "routes:", "  - model: gpt-*", "    to: smal", "models: [small=./echo.mjs]", ""];
    await writeFile(join(folder, "truewire.yaml"), lines.join("\n"));
    const { code, stderr } = await runTruewire(["serve", "--config", join(folder, "truewire.yaml")]);
    expect(code).toBe(1);
    expect(stderr).toContain("truewire.yaml:4: routes[0].to: no model 'smal' is served; expected one of small");
  });

  test("is refused by a reload, after which everything is as it was", async () => {
    const routes = [{ model: "big", to: "small" }];
    const { url, server } = await serve({ routes });
    await expect(server.reload({ models, routes: [{ model: "big", to: "gone" }] })).rejects.toThrow(
      "no model 'gone' is served",
    );
    expect(await chat(url)).toMatchObject({ by: "small" });
  });

  test("answers 503 while an upstream that may have it is not there", async () => {
    const { url } = await serve({
      models: [...models, { kind: "upstream", name: "away", url: "http://127.0.0.1:9/v1" }],
      routes: [{ model: "big", to: "later" }],
    });
    expect(await chat(url)).toMatchObject({ status: 503, rule: "rule-1" });
    expect(await chat(url, { model: "small" })).toMatchObject({ status: 200 });
  });
});
