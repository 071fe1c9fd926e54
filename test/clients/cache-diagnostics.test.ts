import { mkdtempSync, rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import { serving } from "../support/transports.ts";
import { startGateway } from "../upstream/gateway.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

/** What the tests use of a server. */
interface Served {
  readonly url: string;
  readonly model: string;
  /** The requests that an upstream has received. */
  readonly requests?: ScriptedServer["requests"];
  readonly close: () => Promise<unknown>;
}

/** An upstream that speaks chat completions and gives every answer the same id. */
async function behindChat(): Promise<Served> {
  const upstream = await startScripted((response, body) => {
    const envelope = { id: "chatcmpl-1", created: 1_760_000_000, model: "m" };
    const usage = { prompt_tokens: 500, completion_tokens: 1, total_tokens: 501 };
    if (body["stream"] !== true) {
      const message = { role: "assistant", content: "Yes." };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify({ ...envelope, object: "chat.completion", choices, usage }));
    }
    const chunk = (choices: object[], more = {}) =>
      `data: ${JSON.stringify({ ...envelope, object: "chat.completion.chunk", choices, ...more })}\n\n`;
    response.setHeader("content-type", "text/event-stream");
    response.end(
      chunk([{ index: 0, delta: { role: "assistant", content: "Yes." }, finish_reason: null }]) +
        chunk([{ index: 0, delta: {}, finish_reason: "stop" }]) +
        chunk([], { usage }) +
        "data: [DONE]\n\n",
    );
  });
  const gateway = await startGateway(upstream.url, { api: "chat" });
  const close = async () => {
    await gateway.close(0);
    await upstream.close();
  };
  return { url: gateway.url, model: "m", requests: upstream.requests, close };
}

async function demoModel(): Promise<Served> {
  const server = await startTruewire(["--threads", "1", "--gpu", "off"]);
  return { url: server.url, model: "demo", close: () => server.stop() };
}

const system = "You answer with one word, because the one who asks has no time. ".repeat(4);
const tool = (name: string) => ({ name, description: "Looks", input_schema: { type: "object" as const } });

describe.each([
  { source: "the demo model", open: demoModel },
  { source: "an upstream that speaks chat", open: behindChat },
])("cache diagnostics over $source", ({ open }) => {
  let served: Served;
  beforeAll(async () => {
    served = await open();
  });
  afterAll(() => served.close());

  describe("Anthropic's SDK", () => {
    const client = () => new Anthropic({ baseURL: served.url, apiKey: "sk-ant-test", maxRetries: 0 });
    const ask = (
      previous: string | null | undefined,
      members: Partial<Anthropic.MessageCreateParamsNonStreaming> = {},
    ): Promise<Anthropic.Message> =>
      client().messages.create({
        model: served.model,
        max_tokens: 4,
        system,
        messages: [{ role: "user", content: "Is it so?" }],
        tools: [tool("look")],
        ...(previous !== undefined && { diagnostics: { previous_message_id: previous } }),
        ...members,
      });
    const grown: Anthropic.MessageParam[] = [
      { role: "user", content: [{ type: "text", text: "Is it so?", cache_control: { type: "ephemeral" } }] },
      { role: "assistant", content: "Yes." },
      { role: "user", content: "And now?" },
    ];

    test("the first turn, and one that appends to it, have none", async () => {
      const first = await ask(null);
      expect(first.diagnostics).toBeNull();
      const second = await ask(first.id, { messages: grown });
      expect(second.diagnostics).toBeNull();
      // Every turn is compared with any earlier one.
      expect((await ask(first.id)).diagnostics).toBeNull();
      expect((await ask(second.id)).diagnostics).toBeNull();
    });

    test("each change has its reason and a number of tokens", async () => {
      const { id } = await ask(null, { messages: grown });
      const reasonOf = async (members: Partial<Anthropic.MessageCreateParamsNonStreaming>) => {
        const { diagnostics } = await ask(id, { messages: grown, ...members });
        const reason = diagnostics?.cache_miss_reason;
        if (reason && "cache_missed_input_tokens" in reason)
          expect(reason.cache_missed_input_tokens).toBeGreaterThan(0);
        return reason?.type;
      };
      expect(await reasonOf({ system: `${system} It is 9:41.` })).toBe("system_changed");
      expect(await reasonOf({ tools: [tool("see")] })).toBe("tools_changed");
      expect(await reasonOf({ messages: grown.with(0, { role: "user", content: "Is it?" }) })).toBe("messages_changed");
      expect(await reasonOf({ messages: grown.slice(1) })).toBe("messages_changed");
      expect(await reasonOf({ thinking: { type: "disabled" } })).toBe("unavailable");
      expect(await reasonOf({})).toBeUndefined();
    });

    test("a message that is not known is not found: of a request without `diagnostics`, of OpenAI's API, of another key", async () => {
      const notFound = { cache_miss_reason: { type: "previous_message_not_found" } };
      const plain = await ask(undefined);
      expect("diagnostics" in plain).toBe(false);
      expect((await ask(plain.id)).diagnostics).toEqual(notFound);
      expect((await ask("resp_0123456789abcdef")).diagnostics).toEqual(notFound);
      const { id } = await ask(null);
      const other = new Anthropic({ baseURL: served.url, apiKey: "sk-ant-other", maxRetries: 0 });
      const message = await other.messages.create({
        model: served.model,
        max_tokens: 4,
        messages: [{ role: "user", content: "Hi" }],
        diagnostics: { previous_message_id: id },
      });
      expect(message.diagnostics).toEqual(notFound);
    });

    test("a stream has them in message_start", async () => {
      const first = client().messages.stream({
        model: served.model,
        max_tokens: 4,
        system,
        messages: [{ role: "user", content: "Is it so?" }],
        diagnostics: { previous_message_id: null },
      });
      const { id } = await first.finalMessage();
      const events: Anthropic.RawMessageStreamEvent[] = [];
      for await (const event of await client().messages.create({
        model: served.model,
        max_tokens: 4,
        stream: true,
        system: "Another one.",
        messages: [{ role: "user", content: "Is it so?" }],
        diagnostics: { previous_message_id: id },
      }))
        events.push(event);
      const [start] = events;
      const reason = start?.type === "message_start" ? start.message.diagnostics?.cache_miss_reason : undefined;
      expect(reason).toMatchObject({ type: "system_changed" });
      expect(JSON.stringify(events.slice(1))).not.toContain("diagnostics");
    });
  });

  describe("OpenAI's SDK", () => {
    const client = (apiKey = "sk-test") => new OpenAI({ baseURL: `${served.url}/v1`, apiKey, maxRetries: 0 });
    // Version 6 does not declare the members.
    type Params = Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>;
    const compareWith = (id: string | null) => ({ prompt_cache_options: { comparison_response_id: id } }) as Params;
    const ask = (members: Params = {}, apiKey?: string): Promise<OpenAI.Responses.Response> =>
      client(apiKey).responses.create({
        model: served.model,
        instructions: system,
        input: [{ role: "user", content: "Is it so?" }],
        max_output_tokens: 16,
        ...members,
      });
    const found = (response: object): unknown => (response as Record<string, unknown>)["prompt_cache_diagnostics"];
    const read: OpenAI.Responses.Tool = { type: "function", name: "look", parameters: null, strict: false };

    test("absent without a comparison, a hit for a prompt that begins with the earlier one", async () => {
      const first = await ask();
      expect(found(first)).toBeUndefined();
      expect(found(await ask(compareWith(null)))).toBeUndefined();
      expect(found(await ask(compareWith(first.id)))).toEqual({ type: "cache_hit" });
      const second = await ask({
        ...compareWith(first.id),
        previous_response_id: first.id,
        input: [{ role: "user", content: "And now?" }],
      });
      expect(found(second)).toEqual({ type: "cache_hit" });
      const third = await ask({ ...compareWith(second.id), previous_response_id: second.id, input: "And then?" });
      expect(found(third)).toEqual({ type: "cache_hit" });
      // The client sends the whole conversation itself.
      const whole = [{ role: "user", content: "Is it so?" }, ...first.output, { role: "user", content: "And now?" }];
      const input = whole as OpenAI.Responses.ResponseInput;
      expect(found(await ask({ ...compareWith(first.id), input }))).toEqual({ type: "cache_hit" });
    });

    test("each change has its reason and its numbers", async () => {
      const { id } = await ask({ tools: [read] });
      const reasonOf = async (members: Params) => {
        const miss = found(await ask({ tools: [read], ...compareWith(id), ...members })) as Record<string, unknown>;
        expect(Object.keys(miss)).toEqual(["type", "cache_missed_tokens", "comparison_reusable_tokens", "reason"]);
        expect(miss["type"]).toBe("cache_miss");
        expect(miss["cache_missed_tokens"]).toBeGreaterThan(0);
        expect(miss["comparison_reusable_tokens"]).toBeGreaterThanOrEqual(Number(miss["cache_missed_tokens"]));
        return miss["reason"];
      };
      const format = { type: "json_schema", name: "word", schema: { type: "object" } } as const;
      expect(await reasonOf({ service_tier: "flex" })).toBe("service_tier_changed");
      expect(await reasonOf({ prompt_cache_key: "k" })).toBe("prompt_cache_key_changed");
      expect(await reasonOf({ tools: [{ ...read, name: "see" }] })).toBe("tools_changed");
      expect(await reasonOf({ text: { format } })).toBe("text_format_changed");
      expect(await reasonOf({ reasoning: { effort: "low" } })).toBe("reasoning_effort_changed");
      expect(await reasonOf({ text: { verbosity: "low" } })).toBe("verbosity_changed");
      expect(await reasonOf({ instructions: "Another one." })).toBe("input_changed");
      expect(await reasonOf({ input: "Is it?" })).toBe("input_changed");
      const compaction = { type: "compaction", encrypted_content: "elsewhere" } as const;
      expect(await reasonOf({ input: [compaction, { role: "user", content: "Go on." }] })).toBe("context_compacted");
    });

    test("a response that is not known is not found: of another key, not stored, of Anthropic's API, deleted", async () => {
      const notFound = { type: "comparison_response_not_found" };
      const { id } = await ask();
      expect(found(await ask(compareWith(id), "sk-other"))).toEqual(notFound);
      expect(found(await ask(compareWith((await ask({ store: false })).id)))).toEqual(notFound);
      expect(found(await ask(compareWith("msg_0123456789")))).toEqual(notFound);
      await client().responses.delete(id);
      expect(found(await ask(compareWith(id)))).toEqual(notFound);
    });

    test("a stream has none in created, no result in in_progress, and the result in completed", async () => {
      const { id } = await ask();
      const stream = await client().responses.create({
        model: served.model,
        instructions: "Another one.",
        input: "Is it so?",
        max_output_tokens: 16,
        stream: true,
        ...compareWith(id),
      } as OpenAI.Responses.ResponseCreateParamsStreaming);
      const seen: Record<string, unknown> = {};
      let last: OpenAI.Responses.Response | undefined;
      for await (const event of stream) {
        if (!("response" in event)) continue;
        seen[event.type] = found(event.response);
        last = event.response;
      }
      expect(seen["response.created"]).toBeUndefined();
      expect(seen["response.in_progress"]).toEqual({ type: "unavailable" });
      expect(found(last ?? {})).toMatchObject({ type: "cache_miss", reason: "input_changed" });
      // It is stored with the response.
      expect(found(await client().responses.retrieve(last?.id ?? ""))).toEqual(found(last ?? {}));
    });
  });

  test("no upstream of another API receives the ids of earlier answers", async () => {
    if (!served.requests) return;
    expect(served.requests.length).toBeGreaterThan(20);
    expect(JSON.stringify(served.requests.map(({ body }) => body))).not.toMatch(
      /resp_|msg_|diagnostics|prompt_cache_options|comparison/,
    );
  });
});

/** What an upstream of the same API answers, with its own diagnostics. */
const message = {
  model: "m",
  id: "msg_01Theirs",
  type: "message",
  role: "assistant",
  content: [{ type: "text", text: "Yes." }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 1 },
  diagnostics: { cache_miss_reason: { type: "tools_changed", cache_missed_input_tokens: 3701 } },
};
const response = {
  id: "resp_theirs",
  object: "response",
  created_at: 1_760_000_000,
  status: "completed",
  model: "m",
  output: [
    {
      id: "msg_1",
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "Yes.", annotations: [], logprobs: [] }],
    },
  ],
  prompt_cache_diagnostics: { type: "cache_miss", cache_missed_tokens: 4175, reason: "routed_elsewhere" },
};

test.each([
  { api: "messages" as const, path: "messages", answer: message, member: "diagnostics" },
  { api: "responses" as const, path: "responses", answer: response, member: "prompt_cache_diagnostics" },
])("an upstream that speaks $api diagnoses its own answers", async ({ api, path, answer, member }) => {
  const upstream = await startScripted((reply, body) => {
    if (body["stream"] !== true || api === "messages") {
      reply.setHeader("content-type", "application/json");
      return reply.end(JSON.stringify(answer));
    }
    const { prompt_cache_diagnostics, ...created } = response;
    const event = (type: string, more: object, sequence_number: number) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, response: { ...created, ...more }, sequence_number })}\n\n`;
    const running = { status: "in_progress", output: [] };
    reply.setHeader("content-type", "text/event-stream");
    reply.end(
      event("response.created", running, 0) +
        event("response.in_progress", { ...running, prompt_cache_diagnostics: { type: "unavailable" } }, 1) +
        event("response.completed", { prompt_cache_diagnostics }, 2),
    );
  });
  const gateway = await startGateway(upstream.url, { api });
  try {
    const asks = {
      messages: { max_tokens: 10, messages: [{ role: "user", content: "Hi" }] },
      responses: { input: "Hi" },
    }[api];
    // The gateway knows neither id; the upstream may.
    const compares = {
      messages: { diagnostics: { previous_message_id: "msg_01Earlier" } },
      responses: { prompt_cache_options: { comparison_response_id: "resp_earlier" } },
    }[api];
    const post = (members: object) =>
      fetch(`${gateway.url}/v1/${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
        body: JSON.stringify({ model: "m", ...asks, ...compares, ...members }),
      });
    const whole = (await (await post({})).json()) as Record<string, unknown>;
    expect(whole[member]).toEqual((answer as Record<string, unknown>)[member]);
    expect(upstream.requests[0]?.body).toMatchObject(compares);
    if (api === "messages") return;
    const stream = await (await post({ stream: true })).text();
    const [created, inProgress, ...rest] = stream.split("\n\n").filter((event) => event.includes('"response":'));
    expect(created).not.toContain(member);
    expect(inProgress).toContain('"prompt_cache_diagnostics":{"type":"unavailable"}');
    expect(rest.at(-1)).toContain(
      '"prompt_cache_diagnostics":{"type":"cache_miss","cache_missed_tokens":4175,"reason":"routed_elsewhere"}',
    );
  } finally {
    await gateway.close(0);
    await upstream.close();
  }
});

test("servers with the same store find each other's fingerprints", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-fingerprints-"));
  // An answer does not wait for the comparison, so the engine takes longer than the store.
  const engine = new ScriptedEngine(async function* () {
    for (let at = 0; at < 50; at++) await readdir(folder);
    yield* answer(["Hi"]);
  });
  const servers = [];
  try {
    for (let at = 0; at < 2; at++)
      servers.push(await createServer({ port: 0, logLevel: "silent", ...serving(engine, { store: folder }) }));
    const [one, other] = servers.map(({ url }) => new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 }));
    const body = { model: "scripted", max_tokens: 10, messages: [{ role: "user" as const, content: "Hi" }] };
    const first = await one?.messages.create({ ...body, diagnostics: { previous_message_id: null } });
    const diagnostics = { previous_message_id: first?.id ?? "" };
    const second = await other?.messages.create({ ...body, system: "Be brief.", diagnostics });
    expect(second?.diagnostics?.cache_miss_reason?.type).toBe("system_changed");
  } finally {
    await Promise.all(servers.map((server) => server.close(0)));
    rmSync(folder, { recursive: true, force: true });
  }
});
