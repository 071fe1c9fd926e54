import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { answer, callOf, failed, ScriptedEngine } from "../support/scripted-engine.ts";
import type { Script } from "../support/scripted-engine.ts";
import { json, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

/** A response, as a client reads it. */
interface ResponseBody {
  readonly id: string;
  readonly status: string;
  readonly output: readonly { readonly id: string; readonly type: string; readonly content?: unknown }[];
  readonly [member: string]: unknown;
}

/** Says what it was asked last, and calls a tool when that is "call". */
const echo: Script = (request) => {
  const text = told(request).at(-1) ?? "";
  return text.endsWith(": call") ? callOf("look", "{}") : answer([`Re ${text}`]);
};

/** The conversation that the engine was given, a line for each message. */
function told({ prompt }: GenerationRequest): string[] {
  if (prompt.kind === "text") return [];
  return prompt.messages.map(({ role, content }) => {
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
    const words = parts.map((part) => ("text" in part ? part.text : "name" in part ? `${part.name}()` : part.type));
    return `${role}: ${words.join("|")}`;
  });
}

describe.each(transports)("state of Responses over $name", ({ open }) => {
  let engine: ScriptedEngine;
  let api: Api;
  beforeEach(async () => {
    engine = new ScriptedEngine(echo);
    api = await open(serving(engine));
  });
  afterEach(() => api.close());

  const post = (body: object, key?: string): Promise<Response> =>
    api.fetch("/v1/responses", withKey(json({ model: "scripted", ...body }), key));
  const create = async (body: object): Promise<ResponseBody> => {
    const response = await post(body);
    expect(response.status, await response.clone().text()).toBe(200);
    return (await response.json()) as ResponseBody;
  };
  const lastTold = (): string[] => {
    const request = engine.requests.at(-1);
    return request ? told(request) : [];
  };

  test("a response is gone on from: what went in and came out, without its instructions", async () => {
    const first = await create({ input: "one", instructions: "Be brief." });
    const second = await create({ input: [{ role: "user", content: "two" }], previous_response_id: first.id });
    expect(second["previous_response_id"]).toBe(first.id);
    expect(second["store"]).toBe(true);
    await create({ input: "three", previous_response_id: second.id });
    expect(lastTold()).toEqual([
      "user: one",
      "assistant: Re user: one",
      "user: two",
      "assistant: Re user: two",
      "user: three",
    ]);
    await create({ input: "other", previous_response_id: first.id });
    expect(lastTold()).toEqual(["user: one", "assistant: Re user: one", "user: other"]);
  });

  test("a call's output needs only the response that called", async () => {
    const tools = [{ type: "function", name: "look", parameters: { type: "object", properties: {} } }];
    const first = await create({ input: "call", tools });
    const [call] = first.output as readonly { readonly call_id?: string }[];
    const output = { type: "function_call_output", call_id: call?.call_id, output: "seen" };
    const second = await create({ input: [output], previous_response_id: first.id, tools });
    expect(lastTold()).toEqual(["user: call", "assistant: look()", "tool: seen"]);
    // The list had no status where the client gave none, and OpenAI's schema demands one.
    const list = await api.fetch(`/v1/responses/${second.id}/input_items?limit=1`);
    expect(await list.json()).toMatchObject({ data: [{ ...output, status: "completed" }] });
    const unknown = await post({ input: [{ ...output, call_id: "call_x" }], previous_response_id: first.id });
    expect([unknown.status, await unknown.json()]).toMatchObject([
      400,
      { error: { message: "No tool call found for function call output with call_id call_x.", param: "input" } },
    ]);
  });

  test("a streamed response is kept before its end is sent", async () => {
    const response = await post({ input: "one", stream: true });
    const id = /"id":"(resp_\w+)"/.exec(await response.text())?.[1] ?? "";
    const shown = (await (await api.fetch(`/v1/responses/${id}`)).json()) as ResponseBody;
    expect(shown).toMatchObject({ id, status: "completed", output: [{ content: [{ text: "Re user: one" }] }] });
  });

  test.each(["lean", "exact"])("GET shows the body as it was answered (%s)", async (wire) => {
    const headers = { "content-type": "application/json", "x-truewire-wire": wire };
    const created = await api.fetch("/v1/responses", { ...json({ model: "scripted", input: "ñ" }), headers });
    const text = await created.text();
    const { id } = JSON.parse(text) as ResponseBody;
    const shown = await api.fetch(`/v1/responses/${id}`);
    expect(await shown.text()).toBe(text);
    expect(shown.headers.get("content-type")).toBe("application/json");
  });

  test("an item is referred to by its id, of the output and of the input", async () => {
    const first = await create({ input: "one" });
    const items = await api.fetch(`/v1/responses/${first.id}/input_items`);
    const { data } = (await items.json()) as { data: readonly { readonly id: string }[] };
    const references = [data[0]?.id, first.output[0]?.id].map((id) => ({ type: "item_reference", id }));
    await create({ input: [...references, { role: "user", content: "two" }] });
    expect(lastTold()).toEqual(["user: one", "assistant: Re user: one", "user: two"]);
    const unknown = await post({
      input: [
        { type: "item_reference", id: "msg_unknown" },
        { role: "user", content: "x" },
      ],
    });
    expect(unknown.status).toBe(200);
    expect(unknown.headers.get("x-truewire-warning")).toContain("item_reference");
    expect(lastTold()).toEqual(["user: x"]);
  });

  test("input items are listed, the last first, page by page", async () => {
    const first = await create({ input: "one" });
    const second = await create({
      input: [
        { role: "user", content: "two" },
        { type: "message", role: "user", id: "msg_own", content: [{ type: "input_text", text: "three" }] },
      ],
      previous_response_id: first.id,
    });
    const list = async (query: string): Promise<Record<string, unknown> & { data: Record<string, unknown>[] }> =>
      (await (await api.fetch(`/v1/responses/${second.id}/input_items${query}`)).json()) as never;
    const all = await list("?order=asc");
    expect(Object.keys(all)).toEqual(["object", "data", "first_id", "has_more", "last_id"]);
    expect(all.data.map((item) => [item["type"], item["role"], item["content"]])).toEqual([
      ["message", "user", [{ type: "input_text", text: "one" }]],
      ["message", "assistant", [{ type: "output_text", annotations: [], logprobs: [], text: "Re user: one" }]],
      ["message", "user", [{ type: "input_text", text: "two" }]],
      ["message", "user", [{ type: "input_text", text: "three" }]],
    ]);
    expect(Object.keys(all.data[0] ?? {})).toEqual(["id", "type", "status", "content", "role"]);
    const ids = all.data.map(({ id }) => id).toReversed();
    expect(ids[0]).toBe("msg_own");
    const page = await list("?limit=2");
    expect(page).toMatchObject({ object: "list", first_id: ids[0], last_id: ids[1], has_more: true });
    const rest = await list(`?limit=2&after=${String(ids[1])}`);
    expect(rest.data.map(({ id }) => id)).toEqual(ids.slice(2));
    expect(rest["has_more"]).toBe(false);
    for (const [query, message] of [
      ["limit=0", "Invalid 'limit': integer below minimum value. Expected a value >= 1, but got 0 instead."],
      ["limit=101", "Invalid 'limit': integer above maximum value. Expected a value <= 100, but got 101 instead."],
      ["limit=x", "Invalid type for 'limit': expected an integer, but got a string instead."],
      ["order=up", "Invalid value: 'up'. Supported values are: 'asc' and 'desc'."],
      ["after=msg_x", "Item with id 'msg_x' not found."],
    ]) {
      const refused = await api.fetch(`/v1/responses/${second.id}/input_items?${query}`);
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: { message } }]);
    }
  });

  test("a response is deleted, and what went on from it is cut off", async () => {
    const first = await create({ input: "one" });
    const second = await create({ input: "two", previous_response_id: first.id });
    const deleted = await api.fetch(`/v1/responses/${first.id}`, { method: "DELETE" });
    expect([deleted.status, await deleted.json()]).toEqual([200, { id: first.id, object: "response", deleted: true }]);
    for (const [method, path] of [
      ["GET", first.id],
      ["DELETE", first.id],
      ["GET", `${first.id}/input_items`],
      ["POST", `${first.id}/cancel`],
    ] as const) {
      const gone = await api.fetch(`/v1/responses/${path}`, { method });
      expect([gone.status, await gone.json()]).toEqual([
        404,
        {
          error: {
            message: `Response with id '${first.id}' not found.`,
            type: "invalid_request_error",
            param: null,
            code: null,
          },
        },
      ]);
    }
    for (const id of [first.id, second.id, "resp_x"]) {
      const refused = await post({ input: "x", previous_response_id: id });
      expect([refused.status, await refused.json()]).toEqual([
        400,
        {
          error: {
            message: `Previous response with id '${id}' not found.`,
            type: "invalid_request_error",
            param: "previous_response_id",
            code: "previous_response_not_found",
          },
        },
      ]);
    }
  });

  test("store: false keeps nothing", async () => {
    const kept = await create({ input: "one" });
    const response = await create({ input: "one", store: false, previous_response_id: kept.id });
    expect(response["store"]).toBe(false);
    expect((await api.fetch(`/v1/responses/${response.id}`)).status).toBe(404);
    expect((await post({ input: "x", previous_response_id: response.id })).status).toBe(400);
    const reference = { type: "item_reference", id: response.output[0]?.id };
    const answered = await post({ input: [reference, { role: "user", content: "x" }] });
    expect(answered.headers.get("x-truewire-warning")).toContain("item_reference");
  });

  test("a synchronous response cannot be cancelled, and its events are not kept", async () => {
    const { id } = await create({ input: "one" });
    const cancelled = await api.fetch(`/v1/responses/${id}/cancel`, { method: "POST" });
    expect([cancelled.status, await cancelled.json()]).toMatchObject([
      400,
      { error: { message: "Cannot cancel a synchronous response." } },
    ]);
    const streamed = await api.fetch(`/v1/responses/${id}?stream=true`);
    expect([streamed.status, await streamed.json()]).toMatchObject([400, { error: { param: "stream" } }]);
  });

  test("a response that failed on its way is kept as one that failed", async () => {
    engine = new ScriptedEngine(() => [[...answer(["Hello"])][0] ?? [], [failed("engine-error")]]);
    await api.close();
    api = await open(serving(engine));
    const id = /"id":"(resp_\w+)"/.exec(await (await post({ input: "x", stream: true })).text())?.[1] ?? "";
    const shown = (await (await api.fetch(`/v1/responses/${id}`)).json()) as ResponseBody;
    expect(shown).toMatchObject({ status: "failed", output: [], error: { code: "server_error" } });
  });
});

test("nobody finds what was kept for another key", async () => {
  const [transport] = transports;
  const api = await transport?.open(serving(new ScriptedEngine(echo), { apiKey: ["one", "two"] }));
  if (!api) throw new Error("there is a transport");
  try {
    const created = await api.fetch("/v1/responses", withKey(json({ model: "scripted", input: "x" }), "one"));
    const { id, output } = (await created.json()) as ResponseBody;
    expect((await api.fetch(`/v1/responses/${id}`, withKey({}, "one"))).status).toBe(200);
    expect((await api.fetch(`/v1/responses/${id}`, withKey({}, "two"))).status).toBe(404);
    expect((await api.fetch(`/v1/responses/${id}`, withKey({ method: "DELETE" }, "two"))).status).toBe(404);
    expect((await api.fetch(`/v1/responses/${id}`)).status).toBe(401);
    const goOn = { model: "scripted", input: "y", previous_response_id: id };
    expect((await api.fetch("/v1/responses", withKey(json(goOn), "two"))).status).toBe(400);
    const reference = {
      model: "scripted",
      input: [
        { type: "item_reference", id: output[0]?.id },
        { role: "user", content: "y" },
      ],
    };
    const answered = await api.fetch("/v1/responses", withKey(json(reference), "two"));
    expect(answered.headers.get("x-truewire-warning")).toContain("item_reference");
  } finally {
    await api.close();
  }
});

test("a folder keeps responses over a restart, and no key is in it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "truewire-responses-"));
  const [transport] = transports;
  const opened = async (): Promise<Api> => {
    const api = await transport?.open(serving(new ScriptedEngine(echo), { store: folder, apiKey: "secret-key" }));
    if (!api) throw new Error("there is a transport");
    return api;
  };
  try {
    let api = await opened();
    const created = await api.fetch("/v1/responses", withKey(json({ model: "scripted", input: "x" }), "secret-key"));
    const text = await created.text();
    const { id } = JSON.parse(text) as ResponseBody;
    const quiet = json({ model: "scripted", input: "in confidence", store: false });
    expect((await api.fetch("/v1/responses", withKey(quiet, "secret-key"))).status).toBe(200);
    await api.close();
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    const held = await Promise.all(files.map((name) => readFile(name, "utf8")));
    expect(held.join("") + files.join("")).not.toMatch(/secret-key|in confidence/);
    api = await opened();
    expect(await (await api.fetch(`/v1/responses/${id}`, withKey({}, "secret-key"))).text()).toBe(text);
    await api.close();
  } finally {
    await rm(folder, { recursive: true });
  }
});

function withKey(init: RequestInit, key?: string): RequestInit {
  return key === undefined ? init : { ...init, headers: { ...init.headers, authorization: `Bearer ${key}` } };
}
