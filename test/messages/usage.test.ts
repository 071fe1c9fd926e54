import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { defineProgram } from "../../src/engines/program/program.ts";
import { json } from "../support/transports.ts";

// Programs and chat servers without usage: message_start and the whole message said `input_tokens: 0`, count_tokens answered 501, and a
// compaction said 0 tokens. Every source of our tests counted its tokens, and reported them at the end.

type Json = { readonly [name: string]: unknown };

const counted = { promptTokens: 21, completionTokens: 5, promptDetails: { cached_tokens: 6 } };
const programs = {
  "usage-first": defineProgram(function* () {
    yield { type: "usage", usage: counted } as const;
    yield "Paris.";
  }),
  "usage-last": defineProgram(function* () {
    yield "Paris.";
    yield { type: "usage", usage: counted } as const;
  }),
  uncounted: defineProgram(() => "Paris is it."),
};

/** 79 characters, with the names of the members that hold them: 20 tokens, at four characters each. */
const prompt = "x".repeat(72);

describe("the usage of messages", () => {
  let inner: TruewireServer;
  let server: TruewireServer;
  beforeAll(async () => {
    const models = Object.entries(programs).map(([name, program]) => ({ kind: "program" as const, name, program }));
    inner = await createServer({ port: 0, logLevel: "silent", models });
    server = await createServer({
      port: 0,
      logLevel: "silent",
      models: [
        ...models,
        { kind: "upstream", url: `${inner.url}/v1`, models: { chat: "uncounted", "chat-counted": "usage-last" } },
      ],
    });
  });
  afterAll(async () => {
    await server.close(0);
    await inner.close(0);
  });

  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${server.url}/v1${path}`, json({ max_tokens: 50, messages: [{ role: "user", content: prompt }], ...body }));

  /** What the events `message_start` and `message_delta` say, as [input, output] tokens. */
  const streamed = async (model: string): Promise<unknown[]> => {
    const text = await (await post("/messages", { model, stream: true })).text();
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as Json);
    const start = events.find(({ type }) => type === "message_start") as { message: { usage: Json } };
    const delta = events.find(({ type }) => type === "message_delta") as { usage: Json };
    return [start.message.usage, delta.usage].map(inAndOut);
  };
  const whole = async (model: string): Promise<unknown> => {
    const { usage } = (await (await post("/messages", { model })).json()) as { usage: Json };
    return inAndOut(usage);
  };

  test("what a program says before its first text is in message_start", async () => {
    expect(await streamed("usage-first")).toEqual([
      [15, 5],
      [15, 5],
    ]);
    expect(await whole("usage-first")).toEqual([15, 5]);
  });

  test.each(["usage-last", "chat-counted"])(
    "%s: message_start has an estimate (of the answer, what its first text has), the end has the count",
    async (model) => {
      expect(await streamed(model)).toEqual([
        [20, 2],
        [15, 5],
      ]);
      expect(await whole(model)).toEqual([15, 5]);
    },
  );

  test.each(["uncounted", "chat"])("%s: where the source never counts, every usage is an estimate", async (model) => {
    expect(await streamed(model)).toEqual([
      [20, 3],
      [20, 3],
    ]);
    expect(await whole(model)).toEqual([20, 3]);
  });

  test.each(["uncounted", "chat"])("%s: count_tokens answers with an estimate, and says so", async (model) => {
    const response = await post("/messages/count_tokens", { model });
    expect([response.status, await response.text()]).toEqual([200, '{"input_tokens":20}']);
    expect(response.headers.get("x-truewire-estimate")).toBe("tokens");
  });

  test.each(["uncounted", "chat"])("%s: so do input_tokens and compact of the Responses API", async (model) => {
    const tokens = await post("/responses/input_tokens", { model, input: prompt, messages: undefined });
    expect(await tokens.json()).toMatchObject({ input_tokens: 20 });
    expect(tokens.headers.get("x-truewire-estimate")).toBe("tokens");
    const compacted = await post("/responses/compact", { model, input: prompt, messages: undefined });
    expect(await compacted.json()).toMatchObject({ usage: { input_tokens: 20, output_tokens: 0, total_tokens: 20 } });
    expect(compacted.headers.get("x-truewire-estimate")).toBe("tokens");
  });
});

function inAndOut({ input_tokens, output_tokens }: Json): unknown[] {
  return [input_tokens, output_tokens];
}
