import { afterAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { UpstreamModel } from "../../src/serve/config/model-schema.ts";
import { recordingLog } from "../keys/support.ts";
import { startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

const opened: { close(graceMs?: number): Promise<unknown> }[] = [];
afterAll(() => Promise.all(opened.map((one) => one.close(0))));

const key = "sk-own-key-0123456789abcdef";
const messages = [{ role: "user", content: "Hello" }];
const answer = {
  choices: [{ message: { content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 1 },
};

type Vendor = (sent: string) => { status: number; body: object | string };

async function gateway(
  api: NonNullable<UpstreamModel["api"]>,
  more: Partial<UpstreamModel> = {},
  vendorAnswers: Vendor = () => ({ status: 200, body: answer }),
): Promise<{ server: TruewireServer; vendor: ScriptedServer; log: ReturnType<typeof recordingLog> }> {
  const vendor = await startScripted((response) => {
    const { status, body } = vendorAnswers(JSON.stringify(vendor.requests.at(-1)?.headers));
    const type = typeof body === "string" ? "text/event-stream" : "application/json";
    response.writeHead(status, { "content-type": type });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  const log = recordingLog();
  const url = api === "gemini" ? vendor.url.replace(/\/v1$/, "/v1beta") : vendor.url;
  const upstream: UpstreamModel = { kind: "upstream", url, api, passKey: true, models: ["m"], ...more };
  const server = await createServer(
    { port: 0, inspect: true, adminKey: ["admin-0123456789"], models: [upstream] },
    { log: log.log },
  );
  opened.push(server, vendor);
  return { server, vendor, log };
}

function post(server: TruewireServer, path: string, headers: Record<string, string>, body: object): Promise<Response> {
  return fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

const bearer = { authorization: `Bearer ${key}` };
const chat = ["/v1/chat/completions", { model: "m", messages }] as const;
const message = ["/v1/messages", { model: "m", max_tokens: 9, messages }] as const;
const gemini = ["/v1beta/models/m:generateContent", { contents: [{ parts: [{ text: "Hello" }] }] }] as const;

describe("the client's own key goes upstream", () => {
  test.each([
    ["chat", chat, bearer, "authorization", `Bearer ${key}`],
    ["chat", message, { "x-api-key": key }, "authorization", `Bearer ${key}`],
    ["chat", ["/v1/embeddings", { model: "m", input: "Hello" }] as const, bearer, "authorization", `Bearer ${key}`],
    [
      "chat",
      ["/v1/rerank", { model: "m", query: "a", documents: ["b"] }] as const,
      bearer,
      "authorization",
      `Bearer ${key}`,
    ],
    ["responses", chat, bearer, "authorization", `Bearer ${key}`],
    ["messages", chat, bearer, "x-api-key", key],
    ["messages", message, { "x-api-key": key }, "x-api-key", key],
    ["messages", message, bearer, "authorization", `Bearer ${key}`],
    [
      "messages",
      ["/v1/messages/count_tokens", { model: "m", messages }] as const,
      { "x-api-key": key },
      "x-api-key",
      key,
    ],
    ["gemini", chat, bearer, "x-goog-api-key", key],
    ["gemini", gemini, { "x-goog-api-key": key }, "x-goog-api-key", key],
    ["gemini", [`${gemini[0]}?key=${key}`, gemini[1]] as const, {}, "x-goog-api-key", key],
  ] as const)("to %s, from %j with %j: %s", async (api, [path, body], headers, name, value) => {
    const { server, vendor } = await gateway(api);
    await (await post(server, path, headers, body)).text();
    expect(vendor.requests.length).toBeGreaterThan(0);
    for (const { headers: sent } of vendor.requests) {
      expect(sent[name]).toBe(value);
      // In one form only.
      expect(JSON.stringify(sent).split(key)).toHaveLength(2);
    }
  });

  test("for a path that is passed on, too", async () => {
    const { server, vendor } = await gateway("chat", { passPaths: ["/images/*"] });
    await (await post(server, "/v1/images/generations", { ...bearer, cookie: "a=b" }, {})).text();
    expect(vendor.requests[0]?.headers).toMatchObject(bearer);
    expect(vendor.requests[0]?.headers["cookie"]).toBeUndefined();
  });

  test("without a key the client is refused in the words of its API, and the upstream gets nothing", async () => {
    const { server, vendor } = await gateway("chat");
    const ofChat = await post(server, ...withoutKey(chat));
    expect(ofChat.status).toBe(401);
    const ofMessages = await post(server, ...withoutKey(message));
    expect(ofMessages.status).toBe(401);
    expect(await ofMessages.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    expect(vendor.requests).toHaveLength(0);
  });

  test("the limits hold for each key by its hash; what one key has used is another's no more", async () => {
    const { server } = await gateway("chat", { passKey: { requestsPerMinute: 1 } });
    const ask = async (own: string): Promise<number> =>
      (await post(server, chat[0], { authorization: `Bearer ${own}` }, chat[1])).status;
    expect([await ask(key), await ask(key), await ask(`${key}-2`)]).toEqual([200, 429, 200]);
  });
});

function withoutKey([path, body]: readonly [string, object]): [string, Record<string, string>, object] {
  return [path, {}, body];
}

describe("a client's key is kept by nothing", () => {
  const failure = (sent: string): object => ({
    error: { message: `Incorrect API key: ${sent}`, code: "invalid_api_key" },
  });
  test.each<[string, Vendor, boolean]>([
    ["an answer", () => ({ status: 200, body: answer }), false],
    ["a refusal that quotes it", (sent) => ({ status: 401, body: failure(sent) }), false],
    ["an error that quotes it", (sent) => ({ status: 500, body: failure(sent) }), false],
    [
      "a stream that quotes it in an error",
      (sent) => ({ status: 200, body: `data: ${JSON.stringify(failure(sent))}\n\n` }),
      true,
    ],
  ])("%s", async (_, vendor, stream) => {
    const { server, log } = await gateway("chat", { retries: 1 }, vendor);
    const texts: string[] = [];
    for (const [path, body] of [chat, message, gemini])
      texts.push(await (await post(server, path, { ...bearer, "x-goog-api-key": key }, { ...body, stream })).text());
    texts.push(await (await post(server, `${gemini[0]}?key=${key}`, {}, gemini[1])).text());
    const admin = { headers: { authorization: "Bearer admin-0123456789" } };
    const listed = await (await fetch(`${server.url}/admin/requests`, admin)).text();
    const ids = [...listed.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id);
    expect(ids.length).toBeGreaterThanOrEqual(4);
    for (const id of ids) texts.push(await (await fetch(`${server.url}/admin/requests/${id}`, admin)).text());
    texts.push(listed, JSON.stringify(log.lines), await (await fetch(`${server.url}/metrics`, admin)).text());
    expect(log.lines.length).toBeGreaterThan(0);
    for (const text of texts) expect(text).not.toContain(key);
  });
});

describe("settings that contradict each other are refused at the start", () => {
  const upstream: UpstreamModel = { kind: "upstream", url: "http://127.0.0.1:1", passKey: true, models: ["m"] };
  const hash = `sha256:${"0".repeat(64)}`;
  test.each([
    [{ models: [{ ...upstream, key: "sk-0123456789" }] }, "has a key of its own (key)"],
    [{ models: [upstream], keys: [{ name: "alice", hash }] }, "with keys that is a key of this server"],
    [{ models: [upstream], apiKey: ["tw-0123456789"] }, "with apiKey that is a key of this server"],
    [{ models: [upstream], managedKeys: true, adminKey: ["admin-0123456789"] }, "with managedKeys that is a key"],
    [{ models: [{ ...upstream, passKey: { requestsPerMinute: 0 } }] }, "requestsPerMinute"],
  ])("%j", async (config, message) => {
    await expect(createServer({ port: 0, ...config })).rejects.toThrow(message);
    await expect(createServer({ port: 0, ...config })).rejects.toThrow("models[0].passKey");
  });
});
