import { expect, test } from "vitest";
import type { GenerationEvent } from "../../core/events.ts";
import { runSync } from "../../core/steps.ts";
import type { AnswerContext } from "../port.ts";
import type { InTurns, Keyspace, Keyspaces, StorableRequest } from "../port-state.ts";
import { lean } from "../profile.ts";
import { messagesPort } from "./port.ts";

const inTurns: InTurns = async (work) => runSync(work);
const context: AnswerContext = {
  profile: lean,
  created: 1_800_000_000,
  model: "m",
  settings: {},
  random: Math.random,
};
const body = { model: "m", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
const start: GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "text-delta", choice: 0, text: "Hi" },
];

/** A store whose reads end when the test says so. */
class SlowKeyspace implements Keyspace {
  readonly texts = new Map<string, string>();
  readonly waiting: (() => void)[] = [];

  get(key: string): Promise<string | undefined> {
    return new Promise((resolve) => this.waiting.push(() => resolve(this.texts.get(key))));
  }

  async set(key: string, text: string | Iterable<string>): Promise<void> {
    this.texts.set(key, typeof text === "string" ? text : [...text].join(""));
  }

  async delete(key: string): Promise<boolean> {
    return this.texts.delete(key);
  }

  readFrom(): never {
    throw new Error("only conversations are read in parts");
  }

  append(): never {
    throw new Error("only conversations grow");
  }
}

async function read(stored: Keyspace, diagnostics: object, members = {}): Promise<StorableRequest> {
  const assembled = { get: () => undefined, set: () => {}, delete: () => {}, unique: () => "" };
  const keyspaces: Keyspaces = { stored, temporary: stored, assembled, ofConnection: false };
  const { state } = messagesPort;
  if (!state) throw new Error("no state");
  return state.readRequest({ ...body, ...members, diagnostics }, "req_1", {}, keyspaces, inTurns);
}

function messageIn(stream: string): { readonly id: string; readonly diagnostics: unknown } {
  const data = /"message":(\{.*\})\}$/m.exec(stream)?.[1] ?? "";
  return JSON.parse(data) as ReturnType<typeof messageIn>;
}

test("only requests with `diagnostics` need the state, and none of an upstream of this API", () => {
  const isNeeded = (members: object, options = {}) => messagesPort.state?.isNeeded?.({ ...body, ...members }, options);
  expect(isNeeded({ diagnostics: { previous_message_id: null } })).toBe(true);
  expect(isNeeded({})).toBe(false);
  expect(isNeeded({ diagnostics: null })).toBe(false);
  expect(isNeeded({ diagnostics: { previous_message_id: null } }, { forwards: true })).toBe(false);
});

test("a message that starts while the store is read has no reason yet, and does not wait", async () => {
  const store = new SlowKeyspace();
  const first = await read(store, { previous_message_id: null });
  const { id } = messageIn(first.streamWriter(context).write(start));
  const pending = await read(store, { previous_message_id: id }, { system: "Be brief." });
  expect(messageIn(pending.streamWriter(context).write(start)).diagnostics).toEqual({ cache_miss_reason: null });
  const later = await read(store, { previous_message_id: id }, { system: "Be brief." });
  for (const resolve of store.waiting) resolve();
  await new Promise(setImmediate);
  expect(messageIn(later.streamWriter(context).write(start)).diagnostics).toMatchObject({
    cache_miss_reason: { type: "system_changed" },
  });
});

test("the fingerprint is stored when the message starts: the client may leave before its end", async () => {
  const store = new SlowKeyspace();
  const request = await read(store, { previous_message_id: null });
  expect(store.texts.size).toBe(0);
  const { id } = messageIn(request.streamWriter(context).write(start));
  expect([...store.texts.keys()]).toEqual([`fingerprint ${id}`]);
  expect([...store.texts.values()].join("")).not.toContain("Hello");
});

test("a store that fails neither fails the answer nor is it hidden from the log", async () => {
  const broken: Keyspace = {
    get: () => Promise.reject(new Error("away")),
    set: () => Promise.reject(new Error("away")),
    delete: () => Promise.reject(new Error("away")),
    readFrom: () => Promise.reject(new Error("away")),
    append: () => Promise.reject(new Error("away")),
  };
  const request = await read(broken, { previous_message_id: "msg_1" });
  await new Promise(setImmediate);
  const { diagnostics } = messageIn(request.streamWriter(context).write(start));
  expect(diagnostics).toEqual({ cache_miss_reason: { type: "unavailable" } });
  await expect(request.store()).rejects.toThrow("away");
});
