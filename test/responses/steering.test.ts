import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { Usage } from "../../src/wire/core/events.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { said, SocketClient } from "../support/response-socket.ts";
import type { SocketEvent } from "../support/response-socket.ts";
import { answer, asked, callOf, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import type { Batch, Script } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";

const servers: TruewireServer[] = [];
const clients: SocketClient[] = [];
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate();
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

async function serve(script: Script, config: TruewireConfig = {}): Promise<[SocketClient, ScriptedEngine]> {
  const engine = new ScriptedEngine(script);
  // Of the one answer that is steered. Others report their usage themselves.
  const usage = async (): Promise<Usage> => ({ promptTokens: 3, completionTokens: 2 });
  Object.assign(engine.handlers, { usage });
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
  servers.push(server);
  const client = new SocketClient(server.url);
  clients.push(client);
  return [await client.opened(), engine];
}

/** An answer with reasoning, which waits for the test before the rest of it. The answer to anything but "plan" is short. */
function planner(rest: () => Iterable<Batch> = () => answer(["The plan."])): { readonly script: Script; goOn(): void } {
  let goOn: () => void = () => {};
  const waiting = new Promise<void>((resolve) => (goOn = resolve));
  return {
    goOn: () => goOn(),
    async *script(request) {
      if (asked(request) !== "plan") return yield* answer([`Re ${asked(request)}`]);
      yield [
        { type: "start", choice: 0 },
        { type: "reasoning-delta", choice: 0, text: "Let me" },
      ];
      await waiting;
      yield [{ type: "reasoning-delta", choice: 0, text: " see." }];
      yield* rest();
    },
  };
}

/** The id of the response that runs. */
async function begun(client: SocketClient): Promise<string> {
  await until(() => client.events.some(({ type }) => type.includes("delta")), "it begins");
  return client.events.find(({ type }) => type === "response.created")?.response?.id ?? "";
}

function typesIn(events: readonly SocketEvent[]): string[] {
  return events.flatMap(({ type }) => (/created|incomplete|completed|failed|steer|item.done/.test(type) ? [type] : []));
}

async function seen(client: SocketClient, type: string, times = 1): Promise<SocketEvent> {
  const found = (): SocketEvent[] => client.events.filter((event) => event.type === type);
  await until(() => found().length >= times, `${type} comes`);
  return found()[times - 1] as SocketEvent;
}

/** What the engine was told, a line for each message. */
function told({ prompt }: GenerationRequest): string[] {
  if (prompt.kind === "text") return [];
  return prompt.messages.map(({ role, content }) => {
    if (typeof content === "string") return `${role}: ${content}`;
    return `${role}: ${(content ?? []).map((part) => ("text" in part ? part.text : part.type)).join("|")}`;
  });
}

describe("response.steer", () => {
  test("ends the response after its current item, and its successor begins by itself with the same settings", async () => {
    const { script, goOn } = planner();
    const [client, engine] = await serve(script);
    client.send({ stream_id: "a", input: "plan", store: false, instructions: "Be kind.", temperature: 0.5 });
    const id = await begun(client);
    client.steer(id, "Two weeks.");
    const accepted = await seen(client, "response.steer.accepted");
    expect(client.texts.at(-1)).toMatch(
      new RegExp(
        `^\\{"type":"response.steer.accepted","sequence_number":\\d+,"steer":\\{"id":"steer_[0-9a-f]{32}","previous_response_id":"${id}"\\},"stream_id":"a"\\}$`,
      ),
    );
    goOn();
    const last = await seen(client, "response.completed");
    expect(typesIn(client.events)).toEqual([
      "response.created",
      "response.steer.accepted",
      "response.output_item.done",
      "response.incomplete",
      "response.created",
      "response.output_item.done",
      "response.completed",
    ]);
    const { response: first, sequence_number: number } = await seen(client, "response.incomplete");
    expect(first).toMatchObject({
      id,
      status: "incomplete",
      incomplete_details: { reason: "steered" },
      output: [{ type: "reasoning", content: [{ text: "Let me see." }] }],
      usage: { input_tokens: 3, output_tokens: 2 },
    });
    // Every request over WebSocket asked for its usage with each token, in case it would be steered: nearly twice the work for a local model.
    expect(engine.requests.map(({ wantsRunningUsage = false }) => wantsRunningUsage)).toEqual([false, false]);
    expect(last.response).toMatchObject({ previous_response_id: id, temperature: 0.5, instructions: "Be kind." });
    const numbers = client.events.map(({ sequence_number: at }) => at);
    const half = Number(number) + 1;
    expect(numbers).toEqual([...Array(half).keys(), ...Array(numbers.length - half).keys()]);
    expect(Number(accepted["sequence_number"])).toBeLessThan(half);
    expect(said(client.events)).toBe("Re Two weeks.");
    expect(told(engine.requests[1] as GenerationRequest)).toEqual([
      "system: Be kind.",
      "user: plan",
      "assistant: Let me see.",
      "user: Two weeks.",
    ]);
    expect([engine.running, engine.aborted]).toEqual([0, 1]);
  });

  test("a response that ends first is completed, and continued all the same; several steers are one input in order", async () => {
    const { script, goOn } = planner(() => answer([]));
    const [client, engine] = await serve(script);
    client.send({ input: "plan" });
    const id = await begun(client);
    client.steer(id, "one");
    client.steer(id, [{ role: "user", content: [{ type: "input_text", text: "two" }] }]);
    client.steer(id, [{ type: "message", role: "user", content: "three" }]);
    await seen(client, "response.steer.accepted", 3);
    goOn();
    await seen(client, "response.completed", 2);
    expect(typesIn(client.events).slice(-5)).toEqual([
      "response.output_item.done",
      "response.completed",
      "response.created",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(told(engine.requests[1] as GenerationRequest).slice(1)).toEqual([
      "assistant: Let me see.",
      "user: one",
      "user: two",
      "user: three",
    ]);
  });

  test("a message is not cut: its response is completed", async () => {
    let goOn: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const [client] = await serve(async function* (request) {
      const [first, ...rest] = answer(["Half", " and half"]);
      if (first) yield first;
      if (asked(request) === "x") await waiting;
      yield* rest;
    });
    client.send({ input: "x" });
    client.steer(await begun(client), "y");
    await seen(client, "response.steer.accepted");
    goOn();
    const { response } = await seen(client, "response.completed");
    expect(response?.output).toMatchObject([{ status: "completed", content: [{ text: "Half and half" }] }]);
    await seen(client, "response.completed", 2);
  });

  test("a queued request of the lane runs after the successor", async () => {
    const { script, goOn } = planner();
    const [client, engine] = await serve(script);
    client.send({ input: "plan" });
    client.send({ input: "later" });
    client.steer(await begun(client), "steer");
    await seen(client, "response.steer.accepted");
    goOn();
    await seen(client, "response.completed", 2);
    expect(engine.requests.map(asked)).toEqual(["plan", "steer", "later"]);
  });

  test("a steer waits for the results of calls, and goes before them", async () => {
    let goOn: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const [client, engine] = await serve(async function* (request) {
      if (asked(request) !== "plan") return yield* answer(["Done."]);
      const [first, ...rest] = callOf("look", '{"a":', "1}");
      if (first) yield first;
      await waiting;
      yield* rest;
    });
    const tools = [{ type: "function", name: "look", parameters: {} }];
    client.send({ stream_id: "a", input: "plan", store: false, tools });
    await until(() => client.events.some(({ type }) => type === "response.output_item.added"), "the call begins");
    const id = client.events[0]?.response?.id ?? "";
    client.steer(id, "Quick.");
    const { steer } = await seen(client, "response.steer.accepted");
    goOn();
    const pending = await seen(client, "response.steer.pending");
    const callId = `call_${"0".repeat(24)}`;
    expect(pending).toMatchObject({
      reason: "waiting_for_required_input",
      required_input: [{ type: "function_call_output", call_id: callId, name: "look" }],
      steer: { id: (steer as { id: string }).id, previous_response_id: id },
      stream_id: "a",
    });
    expect(typesIn(client.events).slice(-2)).toEqual(["response.completed", "response.steer.pending"]);
    client.steer(id, "Late.");
    expect(await seen(client, "response.steer.failed")).toMatchObject({
      error: { code: "response_already_completed" },
    });
    const output = { type: "function_call_output", call_id: callId, output: "7" };
    client.send({ stream_id: "a", previous_response_id: id, input: [output], store: false, tools });
    const { response } = await seen(client, "response.completed", 2);
    // The model is given the result first, as chat templates and other servers expect.
    expect(told(engine.requests[1] as GenerationRequest)).toEqual([
      "user: plan",
      "assistant: tool-call",
      "tool: 7",
      "user: Quick.",
    ]);
    expect(response).toMatchObject({ previous_response_id: id });
  });

  // The steer waited for an output that the client need not send.
  test("a steer does not wait for the output of an async tool", async () => {
    let goOn: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const [client, engine] = await serve(async function* (request) {
      if (asked(request) !== "plan") return yield* answer(["Done."]);
      const [first, ...rest] = callOf("build", '{"a":', "1}");
      if (first) yield first;
      await waiting;
      yield* rest;
    });
    const tools = [{ type: "function", name: "build", parameters: {}, async: true }];
    client.send({ input: "plan", store: false, tools });
    await until(() => client.events.some(({ type }) => type === "response.output_item.added"), "the call begins");
    client.steer(client.events[0]?.response?.id ?? "", "Quick.");
    await seen(client, "response.steer.accepted");
    goOn();
    await seen(client, "response.completed", 2);
    expect(client.events.map(({ type }) => type)).not.toContain("response.steer.pending");
    expect(told(engine.requests[1] as GenerationRequest)).toEqual([
      "user: plan",
      "assistant: tool-call",
      "tool: The output is not available yet.",
      "user: Quick.",
    ]);
  });

  test("each failure has its code, and returns the input", async () => {
    const { script, goOn } = planner();
    const [client] = await serve(script);
    const failure = async (send: () => void): Promise<unknown[]> => {
      client.events.length = 0;
      send();
      const { error, steer, ...event } = await seen(client, "response.steer.failed");
      const { code, message } = error as { code: string; message: string };
      return [code, message, steer, event["stream_id"]];
    };
    expect(await failure(() => client.steer("resp_x", "y"))).toEqual([
      "response_not_found",
      "The response is not available on this connection.",
      { input: "y", previous_response_id: "resp_x" },
      undefined,
    ]);
    expect(client.texts.at(-1)).toMatch(
      /^\{"type":"response.steer.failed","error":\{"type":"invalid_request_error","code"/,
    );
    expect((await failure(() => client.steer("", "y")))[0]).toBe("response_not_found");
    client.events.length = 0;
    client.send({ stream_id: "a", input: "plan" });
    const id = await begun(client);
    for (const [input, words, members] of [
      ["x", "Unknown parameter: 'stream_id'.", { stream_id: "a" }],
      [[], "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead."],
      [7, "Invalid type for 'input': expected one of a string or array of objects, but got an integer instead."],
      [[{ role: "assistant", content: "x" }], "Invalid value: 'assistant'. Supported values are: 'user'."],
      [[{ role: "user", content: "x", id: "msg_1" }], "Unknown parameter: 'input[0].id'."],
      [
        [{ role: "user", content: [] }],
        "Invalid 'input[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      ],
      [
        [{ role: "user", content: [{ type: "output_text", text: "x" }] }],
        "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
      ],
      [
        [{ type: "function_call_output", call_id: "x", output: "y" }],
        "Invalid value: 'function_call_output'. Supported values are: 'message'.",
      ],
    ] as const) {
      expect(await failure(() => client.steer(id, input, members))).toEqual([
        "invalid_input",
        words,
        { input, previous_response_id: id },
        "a",
      ]);
    }
    for (let at = 0; at < 32; at++) client.steer(id, "x");
    expect((await failure(() => client.steer(id, "x")))[0]).toBe("too_many_pending_steers");
    goOn();
    await seen(client, "response.completed");
    expect((await failure(() => client.steer(id, "x")))[0]).toBe("response_already_completed");
    client.events.length = 0;
    client.socket.send('{"type":"response.steer","input":"x"}');
    expect(await seen(client, "error")).toMatchObject({ status: 400, error: { param: "previous_response_id" } });
  });

  test("input that cannot be committed comes back: the response failed, or its successor cannot be created", async () => {
    let fails = true;
    let goOn: () => void = () => {};
    const [client] = await serve(async function* (request) {
      if (asked(request) === "steer") return yield [failed("rejected", { status: 429, message: "Too many." })];
      yield [
        { type: "start", choice: 0 },
        { type: "reasoning-delta", choice: 0, text: "Hm." },
      ];
      await new Promise<void>((resolve) => (goOn = resolve));
      if (fails) yield [failed("engine-error")];
      else yield* answer(["x"]);
    });
    for (const reason of ["The response failed.", "Too many."]) {
      client.events.length = 0;
      client.send({ input: "x" });
      const id = await begun(client);
      client.steer(id, "steer");
      const { steer } = await seen(client, "response.steer.accepted");
      goOn();
      expect(await seen(client, "response.steer.failed")).toMatchObject({
        error: { code: "successor_creation_failed", message: expect.stringContaining(reason) },
        steer: { ...(steer as object), input: "steer" },
      });
      expect(client.events.filter(({ type, status }) => type === "error" && status !== undefined)).toEqual([]);
      client.steer(id, "again");
      const code = reason === "Too many." ? "response_already_completed" : "response_not_active";
      expect(await seen(client, "response.steer.failed", 2)).toMatchObject({ error: { code } });
      fails = false;
    }
  });

  test("a response with automatic compaction cannot be steered", async () => {
    const { script } = planner();
    const [client] = await serve(script);
    client.send({ input: "plan", context_management: [{ type: "compaction", compact_threshold: 1000 }] });
    client.steer(await begun(client), "x");
    expect(await seen(client, "response.steer.failed")).toMatchObject({ error: { code: "steering_not_supported" } });
  });

  test("what a connection's steers hold is bounded", async () => {
    const { script } = planner();
    const [client] = await serve(script);
    client.send({ input: "plan" });
    const id = await begun(client);
    for (let at = 0; at < 9; at++) client.steer(id, "x".repeat(1e6));
    await seen(client, "response.steer.accepted", 8);
    expect(await seen(client, "response.steer.failed")).toMatchObject({ error: { code: "too_many_pending_steers" } });
  });
});
