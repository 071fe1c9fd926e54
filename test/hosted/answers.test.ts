import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { HostedProgram } from "../../src/wire/core/hosted-program.ts";
import { SocketClient } from "../support/response-socket.ts";
import { answer, type Batch, callOf, ScriptedEngine, until, type Script } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/* Answers with hosted calls in every way in which answers are sent: over WebSocket, in the background, paused, cancelled. */

/** Runs "40+2"; never ends for "wait". */
class Sums {
  readonly signals: AbortSignal[] = [];
  readonly run: HostedProgram = ({ arguments: { code }, signal }) => {
    this.signals.push(signal);
    return code === "wait" ? new Promise(() => {}) : { stdout: "42", stderr: "", returnCode: 0 };
  };
}

/** Calls the interpreter until it has a result, and then says it. */
const calls =
  (code = "40+2"): Script =>
  ({ prompt }) => {
    const last = prompt.kind === "chat" ? prompt.messages.at(-1) : undefined;
    return last?.role === "tool"
      ? answer([`It is ${String(last.content)}.`])
      : callOf("code_interpreter", JSON.stringify({ code }));
  };
const always: Script = () => callOf("code_interpreter", '{"code":"40+2"}');

const tool = { type: "code_interpreter", container: { type: "auto" } };

describe("answers with hosted calls", () => {
  const servers: TruewireServer[] = [];
  const sockets: SocketClient[] = [];
  afterEach(async () => {
    for (const { socket } of sockets.splice(0)) socket.terminate();
    await Promise.all(servers.splice(0).map((server) => server.close(0)));
  });

  const serve = async (
    script: Script,
    more: TruewireConfig = {},
  ): Promise<{ url: string; engine: ScriptedEngine; sums: Sums }> => {
    const engine = new ScriptedEngine(script);
    const sums = new Sums();
    const programs = { code_interpreter: sums.run };
    const { hostedTools, ...others } = more;
    const config = serving(engine, { hostedTools: { programs, ...hostedTools }, ...others });
    const server = await createServer({ port: 0, logLevel: "silent", ...config });
    servers.push(server);
    return { url: server.url, engine, sums };
  };
  const connect = async (url: string): Promise<SocketClient> => {
    const client = new SocketClient(url);
    sockets.push(client);
    return client.opened();
  };
  const types = (items: readonly unknown[] = []): readonly unknown[] =>
    items.map((item) => (item as { readonly type: string }).type);

  /** Calls the interpreter in each round, which uses 100 tokens. */
  const used = { type: "usage", usage: { promptTokens: 80, completionTokens: 20 } } as const;
  const costly: Script = function* (request) {
    for (const batch of always(request, new AbortController().signal) as Iterable<Batch>)
      yield batch.map((event) => (event.type === "usage" ? used : event));
  };
  const priced = { prices: { scripted: { input: 100, output: 100 } }, hostedTools: { maxCost: 0.035 } };

  test("maxCost ends an answer whose rounds and calls have cost as much: incomplete, or paused", async () => {
    const { url, engine, sums } = await serve(costly, priced);
    const body = { model: "scripted", input: "What is 40+2?", tools: [tool] };
    const response = await fetch(`${url}/v1/responses`, json(body));
    // A round costs $0.01: the calls of three run, and those of the fourth fail.
    expect(response.headers.get("x-truewire-cost")).toBe("0.04");
    expect(await response.json()).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      usage: { total_tokens: 400 },
      output: [
        { type: "code_interpreter_call", status: "completed" },
        { type: "code_interpreter_call", status: "completed" },
        { type: "code_interpreter_call", status: "completed" },
        { type: "code_interpreter_call", status: "failed" },
      ],
    });
    expect([engine.requests.length, sums.signals.length]).toEqual([4, 3]);
    const messages = [{ role: "user", content: "What is 40+2?" }];
    const tools = [{ type: "code_execution_20250825", name: "code_execution" }];
    const paused = await fetch(`${url}/v1/messages`, json({ model: "scripted", max_tokens: 1000, messages, tools }));
    expect(await paused.json()).toMatchObject({ stop_reason: "pause_turn" });
    expect(engine.requests).toHaveLength(8);
  });

  test("a call of a hosted tool may have a price of its own", async () => {
    const prices = { scripted: { input: 100, output: 100, hostedCall: 0.02 } };
    const { url, engine } = await serve(costly, { ...priced, prices });
    const body = { model: "scripted", input: "What is 40+2?", tools: [tool] };
    const response = await fetch(`${url}/v1/responses`, json(body));
    expect([engine.requests.length, response.headers.get("x-truewire-cost")]).toEqual([2, "0.06"]);
  });

  test("a model without a price is refused at the start where maxCost holds; without hosted tools it answers", async () => {
    const { url, engine } = await serve(calls(), { hostedTools: { maxCost: 1 } });
    const body = { model: "scripted", input: "What is 40+2?" };
    const refused = await fetch(`${url}/v1/responses`, json({ ...body, tools: [tool] }));
    expect([refused.status, engine.requests.length]).toEqual([403, 0]);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "model_without_price",
        message: expect.stringContaining(
          "The model 'scripted' has no price, and an answer with hosted tools may cost no more than hostedTools.maxCost.",
        ) as string,
      },
    });
    expect((await fetch(`${url}/v1/responses`, json(body))).status).toBe(200);
  });

  test("over WebSocket, the events are those of the stream, and the next answer continues this one", async () => {
    const { url, engine } = await serve(calls());
    const body = { model: "scripted", input: "What is 40+2?", tools: [tool] };
    const streamed = await (await fetch(`${url}/v1/responses`, json({ ...body, stream: true }))).text();
    const expected = [...streamed.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
    expect(expected).toContain("response.code_interpreter_call.interpreting");
    const client = await connect(url);
    const events = await client.answer({ ...body, store: false, include: ["code_interpreter_call.outputs"] });
    expect(types(events)).toEqual(expected);
    const { response } = events.at(-1) ?? {};
    expect(response?.output).toMatchObject([
      { type: "code_interpreter_call", status: "completed", outputs: [{ type: "logs", logs: "42" }] },
      { type: "message", content: [{ text: "It is 42." }] },
    ]);
    const next = await client.answer({
      input: "Again.",
      tools: [tool],
      store: false,
      previous_response_id: response?.id,
    });
    expect(types(next.at(-1)?.response?.output)).toEqual(["code_interpreter_call", "message"]);
    const { prompt } = engine.requests.at(-1) ?? {};
    expect(prompt?.kind === "chat" && prompt.messages.map(({ role }) => role)).toEqual(
      "user assistant tool assistant user assistant tool".split(" "),
    );
  });

  test("without the values of include, the item has no output", async () => {
    const { url } = await serve(calls());
    const { output } = (await (
      await fetch(`${url}/v1/responses`, json({ model: "scripted", input: "x", tools: [tool] }))
    ).json()) as { output: unknown[] };
    expect(output[0]).toMatchObject({ type: "code_interpreter_call", outputs: null });
  });

  test("in the background, the stored response has the calls", async () => {
    const { url } = await serve(calls());
    const asked = json({ model: "scripted", input: "x", tools: [tool], background: true });
    const { id } = (await (await fetch(`${url}/v1/responses`, asked)).json()) as { id: string };
    const show = async (): Promise<{ status: string; output: unknown[] }> =>
      (await (await fetch(`${url}/v1/responses/${id}`)).json()) as { status: string; output: unknown[] };
    await until(async () => (await show()).status === "completed", "it is complete");
    expect(types((await show()).output)).toEqual(["code_interpreter_call", "message"]);
  });

  // The model was asked once more for an answer that nobody received.
  describe("the work of a call ends, and the model is not asked again", () => {
    const body = { model: "scripted", input: "x", tools: [tool] };

    test("when a response in the background is cancelled", async () => {
      const { url, sums, engine } = await serve(calls("wait"));
      const begun = await fetch(`${url}/v1/responses`, json({ ...body, background: true }));
      const { id } = (await begun.json()) as { id: string };
      await until(() => sums.signals.length === 1, "the call runs");
      const cancelled = await fetch(`${url}/v1/responses/${id}/cancel`, { method: "POST" });
      expect(await cancelled.json()).toMatchObject({ status: "cancelled" });
      await until(() => sums.signals[0]?.aborted === true, "the call is aborted");
      expect(engine.requests).toHaveLength(1);
    });

    test("when the client of a stream leaves", async () => {
      const { url, sums, engine } = await serve(calls("wait"));
      const leaving = new AbortController();
      const asked = fetch(`${url}/v1/responses`, { ...json({ ...body, stream: true }), signal: leaving.signal });
      await until(() => sums.signals.length === 1, "the call runs");
      leaving.abort();
      await asked.then((response) => response.text()).catch(() => {});
      await until(() => sums.signals[0]?.aborted === true, "the call is aborted");
      expect(engine.requests).toHaveLength(1);
    });

    test("when the client of a WebSocket leaves", async () => {
      const { url, sums, engine } = await serve(calls("wait"));
      const client = await connect(url);
      client.send(body);
      await until(() => sums.signals.length === 1, "the call runs");
      client.socket.terminate();
      await until(() => sums.signals[0]?.aborted === true, "the call is aborted");
      expect(engine.requests).toHaveLength(1);
    });
  });

  test("a paused answer of Messages continues when the client sends it back", async () => {
    const { url, engine, sums } = await serve(always);
    const tools = [{ type: "code_execution_20250825", name: "code_execution" }];
    const ask = async (messages: readonly object[]): Promise<{ content: object[]; stop_reason: string }> => {
      const asked = json({ model: "scripted", max_tokens: 1000, messages, tools });
      return (await (await fetch(`${url}/v1/messages`, asked)).json()) as { content: object[]; stop_reason: string };
    };
    const user = { role: "user", content: "x" };
    const paused = await ask([user]);
    expect(paused.stop_reason).toBe("pause_turn");
    expect(sums.signals).toHaveLength(10);
    const continued = await ask([user, { role: "assistant", content: paused.content }]);
    expect(continued.stop_reason).toBe("pause_turn");
    expect(sums.signals).toHaveLength(20);
    const { prompt } = engine.requests[10] ?? {};
    expect(prompt?.kind === "chat" && prompt.messages.filter(({ role }) => role === "tool")).toHaveLength(10);
  });
});
