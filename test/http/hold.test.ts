import { describe, expect, test } from "vitest";
import { answer, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, events, serving, transports } from "../support/transports.ts";

/** A promise, and what resolves it. */
function gate(): readonly [Promise<void>, () => void] {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return [opened, () => open()];
}

/** Reads a stream, and returns what has come so far. */
function textReader(response: Response): { untilTwoComments(): Promise<string>; toTheEnd(): Promise<string> } {
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const read = async (): Promise<boolean> => {
    const { value, done } = await reader.read();
    text += value ?? "";
    return done;
  };
  return {
    async untilTwoComments() {
      while (text.split("\n\n").filter((event) => event.startsWith(":")).length < 2) if (await read()) break;
      return text;
    },
    async toTheEnd() {
      while (!(await read()));
      return text;
    },
  };
}

describe.each(transports)("the hold through $name", ({ open }) => {
  test("the status waits for the first event, and a failure after a wait still has its own", async () => {
    const [waiting, go] = gate();
    const engine = new ScriptedEngine(async function* () {
      await waiting;
      yield [failed("rejected", { status: 429 })];
    });
    const api = await open(serving(engine, { hold: "30s" }));
    const response = api.fetch("/v1/chat/completions", chat("x", { stream: true }));
    await until(() => engine.running === 1, "the engine works");
    go();
    expect((await response).status).toBe(429);
    await api.close();
  });

  test("after the hold it is sent with the role chunk, then comments, then the answer without a second role", async () => {
    const [waiting, go] = gate();
    const engine = new ScriptedEngine(async function* () {
      await waiting;
      yield* answer(["Hello"]);
    });
    const api = await open(serving(engine, { hold: "50ms", keepAlive: "50ms" }));
    const response = await api.fetch("/v1/chat/completions", chat("x", { stream: true }));
    expect(response.status).toBe(200);
    const reader = textReader(response);
    const before = await reader.untilTwoComments();
    expect(events(before)[0]).toMatchObject({ choices: [{ delta: { role: "assistant" } }] });
    go();
    const text = await reader.toTheEnd();
    const data = events(text).filter((event) => typeof event === "object");
    expect(data.map((chunk) => (chunk as { choices: { delta: unknown }[] }).choices[0]?.delta)).toEqual([
      { role: "assistant" },
      { content: "Hello" },
      {},
    ]);
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    await api.close();
  });

  test("a failure after the hold is told inside the stream: role chunk, error, [DONE]", async () => {
    const [waiting, go] = gate();
    const engine = new ScriptedEngine(async function* () {
      await waiting;
      yield [failed("engine-error", { status: 503 })];
    });
    const api = await open(serving(engine, { hold: "20ms" }));
    const response = await api.fetch("/v1/chat/completions", chat("x", { stream: true }));
    expect(response.status).toBe(200);
    go();
    const all = events(await response.text()).filter((event) => typeof event !== "string" || !event.startsWith(":"));
    expect(all).toMatchObject([
      { choices: [{ delta: { role: "assistant" } }] },
      { error: { message: "It broke.", type: "server_error" } },
      "data: [DONE]",
    ]);
    await api.close();
  });

  test("a running stream that falls silent gets comments, and none while it speaks", async () => {
    const [waiting, go] = gate();
    const engine = new ScriptedEngine(async function* () {
      const [first, ...rest] = answer(["Hello", " world"]);
      if (first) yield first;
      await waiting;
      yield* rest;
    });
    const api = await open(serving(engine, { keepAlive: "60ms" }));
    const reader = textReader(await api.fetch("/v1/chat/completions", chat("x", { stream: true })));
    await reader.untilTwoComments();
    go();
    const text = await reader.toTheEnd();
    expect(text.indexOf(":")).toBeGreaterThanOrEqual(text.indexOf("data"));
    const quick = new ScriptedEngine(() => answer(["Hello", " world"]));
    const other = await open(serving(quick, { keepAlive: "60ms" }));
    const without = await (await other.fetch("/v1/chat/completions", chat("x", { stream: true }))).text();
    expect(without.split("\n\n").filter((event) => event.startsWith(":"))).toEqual([]);
    await Promise.all([api.close(), other.close()]);
  });

  test("a client that leaves while the status is held cancels", async () => {
    const engine = new ScriptedEngine(async function* (_, signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield* answer(["nobody hears"]);
    });
    const api = await open(serving(engine, { hold: "30s" }));
    const leaving = new AbortController();
    const response = api.fetch("/v1/chat/completions", { ...chat("x", { stream: true }), signal: leaving.signal });
    response.catch(() => {});
    await until(() => engine.running === 1, "the engine works");
    leaving.abort();
    await until(() => engine.running === 0 && engine.aborted === 1, "the engine is told");
    await api.close();
  });
});
