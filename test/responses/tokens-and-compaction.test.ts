import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/** Ten tokens a message. */
class CountingEngine extends ScriptedEngine {
  override readonly handlers = {
    "count-tokens": async ({ prompt }: GenerationRequest) => (prompt.kind === "chat" ? prompt.messages.length * 10 : 0),
  };
}

interface Compaction {
  readonly id: string;
  readonly output: readonly { readonly type: string; readonly id: string; readonly [member: string]: unknown }[];
  readonly [member: string]: unknown;
}

describe("input_tokens and compact", () => {
  let engine: CountingEngine;
  let server: TruewireServer;
  beforeEach(async () => {
    engine = new CountingEngine(() => answer(["Paris."]));
    server = await createServer({ port: 0, logLevel: "silent", wire: "exact", ...serving(engine) });
  });
  afterEach(() => server.close(0));

  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${server.url}/v1/responses${path}`, json({ model: "scripted", ...body }));
  const told = (): unknown => {
    const prompt = engine.requests.at(-1)?.prompt;
    return prompt?.kind === "chat" ? prompt.messages.map(({ role, content }) => [role, words(content)]) : undefined;
  };
  const conversation = [
    { role: "user", content: "The capital of France?" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "Paris." }] },
    { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "seen" },
    { role: "user", content: "And of Spain?" },
  ];
  const asMessages = [
    ["user", "The capital of France?"],
    ["assistant", "Paris.|look"],
    ["tool", "seen"],
    ["user", "And of Spain?"],
  ];

  // A trigger was answered with a message of the model and a warning about a tool, so that clients, which expect one compaction, failed.
  test.each(["lean", "exact"])(
    "a compaction_trigger at the end gives one compaction and asks no model, wire %s",
    async (wire) => {
      const client = new OpenAI({
        baseURL: `${server.url}/v1`,
        apiKey: "none",
        maxRetries: 0,
        defaultHeaders: { "x-truewire-wire": wire },
      });
      const input = [...conversation, { type: "compaction_trigger" }] as OpenAI.Responses.ResponseInput;
      const whole = await client.responses.create({ model: "scripted", input });
      const events: OpenAI.Responses.ResponseStreamEvent[] = [];
      for await (const event of await client.responses.create({ model: "scripted", input, stream: true }))
        events.push(event);
      expect(events.map(({ type }) => type)).toEqual([
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
      ]);
      expect(engine.requests).toHaveLength(0);
      const last = events.at(-1);
      const streamed = last?.type === "response.completed" ? last.response : whole;
      for (const response of [whole, streamed]) {
        expect(response).toMatchObject({ status: "completed", error: null });
        expect(response.output).toEqual([
          {
            type: "compaction",
            id: expect.stringMatching(/^cmp_/) as string,
            encrypted_content: expect.any(String) as string,
          },
        ]);
        expect(response.usage?.input_tokens).toBeGreaterThan(0);
        const more = [{ role: "user", content: "And of Italy?" }];
        const expected = [...asMessages, ["user", "And of Italy?"]];
        for (const next of [
          { input: [...response.output, ...more] },
          // Clients that keep everything, and those that refer to the response: the compaction replaces what is before it.
          { input: [...input, ...response.output, ...more] },
          { previous_response_id: response.id, input: more },
        ]) {
          await client.responses.create({
            model: "scripted",
            ...next,
          } as OpenAI.Responses.ResponseCreateParamsNonStreaming);
          expect(told()).toEqual(expected);
        }
        engine.requests.length = 0;
      }
    },
  );

  test("tokens are counted, those of what the request goes on from, too", async () => {
    const counted = await post("/input_tokens", { input: "x", instructions: "y" });
    expect([counted.status, await counted.text()]).toEqual([
      200,
      '{\n  "object": "response.input_tokens",\n  "input_tokens": 20\n}',
    ]);
    const { id } = (await (await post("", { input: "x" })).json()) as { id: string };
    const more = await post("/input_tokens", { input: "y", previous_response_id: id });
    expect(await more.json()).toMatchObject({ input_tokens: 30 });
    expect(engine.requests).toHaveLength(1);
  });

  test("what cannot be counted is refused", async () => {
    expect((await post("/input_tokens", { input: 7 })).status).toBe(400);
    const unknown = await post("/input_tokens", { model: "other", input: "x" });
    expect([unknown.status, await unknown.json()]).toMatchObject([400, { error: { code: "model_not_found" } }]);
  });

  test("a compaction stands for the conversation, to the last call", async () => {
    const made = await post("/compact", { input: conversation });
    expect(made.status).toBe(200);
    const compaction = (await made.json()) as Compaction;
    expect(Object.keys(compaction)).toEqual(["id", "object", "created_at", "output", "usage"]);
    expect(compaction).toMatchObject({
      object: "response.compaction",
      usage: { input_tokens: 40, output_tokens: 0, total_tokens: 40 },
    });
    expect(compaction.output.map(({ type }) => type)).toEqual(["message", "message", "compaction"]);
    const sealed = compaction.output.at(-1);
    expect(sealed?.id).toMatch(/^cmp_/);
    for (const kept of [compaction.output, [sealed]]) {
      await post("", { input: [...kept, { role: "user", content: "Go on." }], store: false });
      expect(told()).toEqual([...asMessages, ["user", "Go on."]]);
    }
  });

  test("a compaction can be compacted, and goes on from a response; it begins a chain of its own", async () => {
    const { id } = (await (await post("", { input: "One?" })).json()) as { id: string };
    const first = (await (await post("/compact", { previous_response_id: id })).json()) as Compaction;
    const second = (await (
      await post("/compact", { input: [...first.output, { role: "user", content: "Two?" }] })
    ).json()) as Compaction;
    const begun = await post("", { input: [...second.output, { role: "user", content: "Three?" }] });
    const { id: next } = (await begun.json()) as { id: string };
    await post("", { input: "Four?", previous_response_id: next });
    expect(told()).toEqual([
      ["user", "One?"],
      ["assistant", "Paris."],
      ["user", "Two?"],
      ["user", "Three?"],
      ["assistant", "Paris."],
      ["user", "Four?"],
    ]);
  });

  test("a compaction of another server is left out, a request without a model refused", async () => {
    const foreign = { type: "compaction", id: "cmp_1", encrypted_content: "gAAAA" };
    const answered = await post("", { input: [foreign, { role: "user", content: "x" }] });
    expect(answered.headers.get("x-truewire-warning")).toContain("a compaction of another server cannot be opened");
    for (const model of [null, undefined]) {
      const refused = await fetch(`${server.url}/v1/responses/compact`, json({ model, input: "x" }));
      expect(refused.status).toBe(400);
    }
  });
});

function words(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = (content ?? []) as readonly { readonly text?: string; readonly name?: string }[];
  return parts.map(({ text, name }) => text ?? name).join("|");
}
