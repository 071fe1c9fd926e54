import { describe, expect, test } from "vitest";
import { openTransport } from "../../src/engines/upstream/undici-transport.ts";
import { openUpstreamEngine } from "../../src/engines/upstream/upstream-engine.ts";
import type { UpstreamOptions } from "../../src/engines/upstream/options.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { GenerationEnd, GenerationEvent } from "../../src/wire/core/events.ts";
import type { GenerationObserver, ObservedAttempt } from "../../src/wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { readChatRequest } from "../../src/wire/apis/chat/request.ts";
import { done, event, finish, role, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

// What an upstream engine does before a client sees anything: headers, attempts, and requests that cannot be sent.

async function open(url: string, options: Partial<UpstreamOptions> = {}): Promise<Engine> {
  const engine = await openUpstreamEngine({ urls: [url], name: "test", models: { m: "m" }, ...options }, openTransport);
  closeAfterTest(() => engine.close(0));
  return engine;
}

async function scripted(...args: Parameters<typeof startScripted>): Promise<ScriptedServer> {
  const server = await startScripted(...args);
  closeAfterTest(() => server.close());
  return server;
}

function requestOf(members: object = {}): GenerationRequest {
  const body = { model: "m", stream: true, messages: [{ role: "user", content: "Hi" }], ...members };
  return readChatRequest(body, "req_1", { forwards: true }).request;
}

// The headers went to the first batch alone, and the role or a chunk without choices is often alone in it. The test of the headers wrote
// its stream at once.
test("rate limits are part of the first choice's start, whatever comes before it and in whichever reads", async () => {
  const filters = `data: ${JSON.stringify({ choices: [], prompt_filter_results: [{ prompt_index: 0 }] })}\n\n`;
  const steps = [filters, role, event({ content: "Hello" }), finish + done];
  let writeNext = (): void => {};
  const server = await scripted((response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "x-ratelimit-remaining-requests": "9" });
    writeNext = () => {
      const step = steps.shift();
      if (step !== undefined) response.write(step);
      else response.end();
    };
    writeNext();
  });
  const engine = await open(server.url);
  const batches: (readonly GenerationEvent[])[] = [];
  for await (const batch of engine.generate(requestOf())) {
    batches.push(batch);
    writeNext();
  }
  expect(batches[0]).toMatchObject([{ type: "extra" }]);
  expect(batches[1]).toMatchObject([
    { type: "start", source: { id: "chatcmpl-1", headers: { "x-ratelimit-remaining-requests": "9" } } },
  ]);
});

/** Follows attempts; `ended` has how each one did. */
class AttemptLog implements GenerationObserver {
  readonly attempts: ObservedAttempt[] = [];
  readonly ended: GenerationEnd[] = [];

  attempt(attempt: ObservedAttempt): ReturnType<GenerationObserver["attempt"]> {
    this.attempts.push(attempt);
    return { headers: { traceparent: "00-1" }, ended: (end) => this.ended.push(end) };
  }

  cacheMissed(): void {}
  repaired(): void {}
}

describe("a request that cannot be written for its upstream", () => {
  // The engine threw, and leaving it was counted as an attempt that the client had ended.
  test.each<[string, Partial<UpstreamOptions>, GenerationRequest, string]>([
    ["tokens of another API", { api: "messages" }, { ...requestOf(), wantsTokenIds: true }, "return_token_ids"],
    [
      "a text for a server that only chats",
      { api: "messages" },
      { ...requestOf(), prompt: { kind: "text", text: "Once" } } as never,
      "",
    ],
  ])("%s: it is rejected, and no attempt is counted", async (_, options, request, named) => {
    const server = await scripted((response) => response.end());
    const engine = await open(server.url, options);
    const log = new AttemptLog();
    const events: GenerationEvent[] = [];
    for await (const batch of engine.generate(request, log)) events.push(...batch);
    expect(events).toMatchObject([{ type: "end", end: { kind: "rejected" } }]);
    expect(JSON.stringify(events)).toContain(named);
    expect([log.attempts, log.ended, server.requests]).toEqual([[], [], []]);
    expect(engine.health()).toMatchObject({ state: "ready", counters: { outstanding: 0 } });
  });

  test("an attempt that is made is observed, and sends the headers of its trace", async () => {
    const server = await scripted((response) => response.end(role + event({ content: "Hi" }) + finish + done));
    const engine = await open(server.url);
    const log = new AttemptLog();
    for await (const _ of engine.generate(requestOf(), log));
    expect(server.requests[0]?.headers["traceparent"]).toBe("00-1");
    expect(log.attempts).toHaveLength(1);
    expect(log.ended).toEqual([{ kind: "done" }]);
  });
});

// The server counted the beginning of an item as nothing shown, and the engine did not: its next attempt was never made.
test("a response that fails after the beginning of an item is tried again", async () => {
  const named = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const response = { id: "resp_1", object: "response", created_at: 1, model: "m", status: "in_progress", output: [] };
  const item = { id: "rs_1", type: "reasoning", summary: [] };
  const broken =
    named("response.created", { sequence_number: 0, response }) +
    named("response.output_item.added", { sequence_number: 1, output_index: 0, item }) +
    named("error", { sequence_number: 2, code: "server_error", message: "Overloaded.", param: null });
  const message = { id: "msg_1", type: "message", status: "completed", role: "assistant" };
  const content = [{ type: "output_text", text: "Hello", annotations: [] }];
  const whole = { ...response, status: "completed", output: [{ ...message, content }] };
  const right = named("response.completed", { sequence_number: 0, response: whole });
  const server = await scripted((answer, _, attempt) => answer.end(attempt === 1 ? broken : right));
  const engine = await open(server.url, { api: "responses", retries: 1 });
  const events: GenerationEvent[] = [];
  for await (const batch of engine.generate(requestOf())) events.push(...batch);
  expect(server.requests).toHaveLength(2);
  expect(events.flatMap((event) => (event.type === "text-delta" ? [event.text] : []))).toEqual(["Hello"]);
  expect(events.at(-1)).toEqual({ type: "end", end: { kind: "done" } });
});
