import { afterEach, describe, expect, test } from "vitest";
import { createServer, type TruewireServer } from "../../src/serve/app/create-server.ts";
import { turnSeal } from "../../src/wire/apis/turn-seal.ts";
import { assistantParts } from "../../src/wire/core/message.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import type { CallState, ReasoningState } from "../../src/wire/core/turn-state.ts";
import { idOf, SocketClient } from "../support/response-socket.ts";
import { done, ScriptedEngine, until, type Script } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/*
 * The state of a turn at clients of Responses: those that include encrypted content return it, and for others the stored response has it.
 */

interface Item {
  readonly id: string;
  readonly type: string;
  readonly call_id?: string;
  readonly encrypted_content?: string;
}
interface Shown {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Item[];
}

const signed: ReasoningState = { kind: "signature", value: "c2lnbmVk" };
const ofCall = (index: number): CallState => ({
  kind: "call",
  value: { extra_content: { google: { thought_signature: `secret-${index}` } } },
});

/** Reasons and calls twice, both with states, until it has results; then it answers. */
const script: Script = ({ prompt }) => {
  const hasResult = prompt.kind === "chat" && prompt.messages.some(({ role }) => role === "tool");
  const events: GenerationEvent[] = [{ type: "start", choice: 0 }];
  if (hasResult) events.push({ type: "text-delta", choice: 0, text: "Done." });
  else {
    events.push({ type: "part-start", choice: 0, kind: "reasoning" });
    events.push({ type: "reasoning-delta", choice: 0, text: "I call twice." });
    events.push({ type: "part-end", choice: 0, state: signed });
    for (const index of [0, 1]) {
      events.push({ type: "tool-call-start", choice: 0, index, id: `call_${index}`, name: "f", state: ofCall(index) });
      events.push({ type: "tool-call-delta", choice: 0, index, arguments: "{}" });
      events.push({ type: "tool-call-end", choice: 0, index, status: "succeeded" });
    }
  }
  events.push({ type: "finish", choice: 0, reason: hasResult ? "stop" : "tool-calls" });
  return [events, [done]];
};

/** The states that the engine is given, in the order of the conversation. */
function statesOf(request: GenerationRequest | undefined): readonly unknown[] {
  if (request?.prompt.kind !== "chat") return [];
  return request.prompt.messages.flatMap((message) =>
    message.role === "assistant"
      ? assistantParts(message).flatMap((part) => ("state" in part && part.state ? [part.state] : []))
      : [],
  );
}
const allStates = [signed, ofCall(0), ofCall(1)];

const results = (output: readonly Item[]): object[] =>
  output.flatMap(({ type, call_id: id }) =>
    type === "function_call" ? [{ type: "function_call_output", call_id: id, output: "1" }] : [],
  );
const user = { role: "user", content: "Call." };

describe("the state of a turn", () => {
  const servers: TruewireServer[] = [];
  const sockets: SocketClient[] = [];
  afterEach(async () => {
    for (const { socket } of sockets.splice(0)) socket.terminate();
    await Promise.all(servers.splice(0).map((server) => server.close(0)));
  });
  const opened = async (): Promise<{
    url: string;
    engine: ScriptedEngine;
    create: (body: object) => Promise<Shown>;
  }> => {
    const engine = new ScriptedEngine(script);
    const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine) });
    servers.push(server);
    const create = async (body: object): Promise<Shown> => {
      const response = await fetch(`${server.url}/v1/responses`, json({ model: "scripted", ...body }));
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return JSON.parse(text) as Shown;
    };
    return { url: `${server.url}/v1`, engine, create };
  };

  test("comes back from a client that includes encrypted content, each state directly before its call", async () => {
    const { engine, create } = await opened();
    const options = { store: false, include: ["reasoning.encrypted_content"] };
    const { output } = await create({ ...options, input: [user] });
    expect(output.map(({ type }) => type)).toEqual([
      "reasoning",
      "reasoning",
      "function_call",
      "reasoning",
      "function_call",
    ]);
    await create({ ...options, input: [user, ...output, ...results(output)] });
    expect(statesOf(engine.requests.at(-1))).toEqual(allStates);
  });

  test("is kept by the stored response for others, and shown nowhere", async () => {
    const { url, engine, create } = await opened();
    const first = await create({ input: [user] });
    expect(first.output.map(({ type }) => type)).toEqual(["reasoning", "function_call", "function_call"]);
    const second = await create({ input: results(first.output), previous_response_id: first.id });
    expect(statesOf(engine.requests.at(-1))).toEqual(allStates);
    const third = await create({ input: [user], previous_response_id: second.id });
    expect(statesOf(engine.requests.at(-1))).toEqual(allStates);
    for (const path of [`/responses/${first.id}`, `/responses/${third.id}/input_items?limit=100`]) {
      const text = await (await fetch(url + path)).text();
      expect(text).toContain("call_1");
      expect(text, path).not.toContain("encrypted_content");
    }
    const list = await fetch(
      `${url}/responses/${third.id}/input_items?limit=100&include[]=reasoning.encrypted_content`,
    );
    const { data } = (await list.json()) as { readonly data: readonly Item[] };
    const shown = data.filter(({ encrypted_content: encrypted }) => encrypted !== undefined);
    expect(shown.map(({ type }) => type)).toEqual(["reasoning"]);
  });

  test("is kept for a response in the background", async () => {
    const { url, engine, create } = await opened();
    const begun = await create({ input: [user], background: true });
    let response = begun;
    await until(async () => {
      response = (await (await fetch(`${url}/responses/${begun.id}`)).json()) as Shown;
      return response.status === "completed";
    }, "the response is complete");
    await create({ input: results(response.output), previous_response_id: begun.id });
    expect(statesOf(engine.requests.at(-1))).toEqual(allStates);
  });

  test("is kept for a connection that stores nothing", async () => {
    const { url, engine } = await opened();
    const client = await new SocketClient(url.replace(/\/v1$/, "")).opened();
    sockets.push(client);
    const events = await client.answer({ input: [user], store: false });
    await client.answer({
      input: ["call_0", "call_1"].map((call_id) => ({ type: "function_call_output", call_id, output: "1" })),
      previous_response_id: idOf(events),
      store: false,
    });
    expect(statesOf(engine.requests.at(-1))).toEqual(allStates);
  });

  // Adding items read the conversation with the seal of the library, and what was read is remembered: the next response had no states. No
  // test added items to a conversation that had some.
  test("is kept by a conversation, also when items were added to it, and its prompt was counted", async () => {
    const { url, engine, create } = await opened();
    const made = await fetch(`${url}/conversations`, json({}));
    const { id } = (await made.json()) as { readonly id: string };
    const { output } = await create({ input: [user], conversation: id });
    const items = [...results(output), user];
    expect((await fetch(`${url}/conversations/${id}/items`, json({ items }))).status).toBe(200);
    const counted = { model: "scripted", input: "x", conversation: id };
    expect((await fetch(`${url}/responses/input_tokens`, json(counted))).status).toBe(200);
    await create({ input: "Go on.", conversation: id });
    expect(statesOf(engine.requests.at(-1))).toEqual(allStates);
    const list = await (await fetch(`${url}/conversations/${id}/items?limit=100`)).text();
    expect(list).toContain("call_1");
    expect(list).not.toContain("encrypted_content");
  });

  // A damaged value was left out without a word.
  test("that is mangled, or was made elsewhere, is left out with a warning", async () => {
    const { url, engine, create } = await opened();
    const options = { store: false, include: ["reasoning.encrypted_content"] };
    const { output } = await create({ ...options, input: [user] });
    const elsewhere = turnSeal(new Uint8Array(32).fill(7), "").seal({ state: ofCall(0), callId: "call_0" });
    const changes: readonly ((value: string) => string)[] = [
      () => elsewhere,
      (value) => value.slice(0, -2),
      (value) => `${value.slice(0, 30)}${value.charAt(30) === "A" ? "B" : "A"}${value.slice(31)}`,
      () => "truewire.1.e30",
      () => "truewire.",
    ];
    for (const change of changes) {
      const mangled = output.map((item) =>
        item.encrypted_content === undefined ? item : { ...item, encrypted_content: change(item.encrypted_content) },
      );
      const input = [user, ...mangled, ...results(output)];
      const response = await fetch(`${url}/responses`, json({ model: "scripted", ...options, input }));
      expect(response.status).toBe(200);
      expect(response.headers.get("x-truewire-warning")).toContain("encrypted content that is damaged");
      expect(statesOf(engine.requests.at(-1))).toEqual([]);
    }
  });
});
