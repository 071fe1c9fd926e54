import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../core/events.ts";
import { runSync } from "../../../core/steps.ts";
import type { InTurns, Keyspace, Keyspaces } from "../../port-state.ts";
import { lean } from "../../profile.ts";
import { readStoredRequest } from "./stored-request.ts";

const inTurns: InTurns = async (work) => runSync(work);

/** A store whose reads do not end once it is told to hold them. */
class HeldKeyspace implements Keyspace {
  readonly texts = new Map<string, string>();
  holds = false;

  get(key: string): Promise<string | undefined> {
    return this.holds ? new Promise(() => {}) : Promise.resolve(this.texts.get(key));
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

interface Stores extends Keyspaces {
  readonly stored: HeldKeyspace;
  readonly temporary: HeldKeyspace;
}

function stores(ofConnection = false): Stores {
  const assembled = { get: () => undefined, set: () => {}, delete: () => {}, unique: () => "" };
  return { stored: new HeldKeyspace(), temporary: new HeldKeyspace(), assembled, ofConnection };
}

const events: readonly GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "text-delta", choice: 0, text: "Hi" },
  { type: "usage", usage: { promptTokens: 1000, completionTokens: 1 } },
  { type: "finish", choice: 0, reason: "stop" },
  { type: "end", end: { kind: "done" } },
];

interface Answered {
  readonly id: string;
  readonly prompt_cache_diagnostics?: unknown;
}

/** Answers a request with a stream and stores the answer. Returns the response of the last event. */
async function answered(keyspaces: Keyspaces, members: object): Promise<Answered> {
  const request = await readStoredRequest({ model: "m", ...members }, "req_1", {}, keyspaces, inTurns);
  const writer = request.streamWriter({
    profile: lean,
    created: 1_800_000_000,
    model: "m",
    settings: {},
    random: Math.random,
  });
  // The server does other work in between, too.
  await new Promise(setImmediate);
  const text = writer.write(events);
  await request.store();
  const data = /event: response\.completed\ndata: (.*)/.exec(text)?.[1] ?? "";
  return (JSON.parse(data) as { response: Answered }).response;
}

const user = (content: string) => ({ role: "user", content });
const compare = (id: string) => ({ prompt_cache_options: { comparison_response_id: id } });

test("a connection finds its own responses that are not stored, and no other one does", async () => {
  const connection = stores(true);
  const { id } = await answered(connection, { input: "Hello", store: false });
  const again = await answered(connection, { input: "Hello", store: false, ...compare(id) });
  expect(again.prompt_cache_diagnostics).toEqual({ type: "cache_hit" });
  const other = await answered(
    { ...connection, temporary: new HeldKeyspace(), ofConnection: false },
    { input: "Hello", ...compare(id) },
  );
  expect(other.prompt_cache_diagnostics).toEqual({ type: "comparison_response_not_found" });
});

test("a store that does not answer in time delays nothing", async () => {
  const keyspaces = stores();
  const { id } = await answered(keyspaces, { input: "Hello" });
  keyspaces.temporary.holds = true;
  const late = await answered(keyspaces, { input: "Hello", ...compare(id) });
  expect(late.prompt_cache_diagnostics).toEqual({ type: "unavailable" });
});

test("a response of an earlier version, which has no fingerprint, is not found", async () => {
  const keyspaces = stores();
  const { id } = await answered(keyspaces, { input: "Hello" });
  for (const [key, text] of keyspaces.stored.texts)
    keyspaces.stored.texts.set(key, text.replace(/,"fingerprint":\{.*?"count":\d+\}/, ""));
  const later = await answered(keyspaces, { input: "Hello", ...compare(id) });
  expect(later.prompt_cache_diagnostics).toEqual({ type: "comparison_response_not_found" });
});

test("the tokens are those that the model has counted", async () => {
  const keyspaces = stores();
  const { id } = await answered(keyspaces, { input: [user("a".repeat(400)), user("b".repeat(400))] });
  const later = await answered(keyspaces, { input: [user("a".repeat(400)), user("c".repeat(400))], ...compare(id) });
  expect(later.prompt_cache_diagnostics).toEqual({
    type: "cache_miss",
    cache_missed_tokens: 500,
    comparison_reusable_tokens: 1000,
    reason: "input_changed",
  });
});

test("a request that neither asks nor is stored has no fingerprint, and a stored one no text in it", async () => {
  const keyspaces = stores();
  await answered(keyspaces, { input: "Secret", store: false });
  expect(keyspaces.stored.texts.size + keyspaces.temporary.texts.size).toBe(0);
  await answered(keyspaces, { input: "Secret", instructions: "Secret" });
  const [text = ""] = keyspaces.stored.texts.values();
  const found = /"fingerprint":(\{.*?"count":\d+\})/.exec(text)?.[1] ?? "";
  expect(JSON.parse(found)).toMatchObject({ count: 1 });
  expect(found).not.toContain("Secret");
});

// It changes the effort of the requests after it, and a prompt that begins the same is in the cache.
test("configuration_update in the input is no change of the settings", async () => {
  const keyspaces = stores();
  const { id } = await answered(keyspaces, { input: [user("Hello")], reasoning: { effort: "low" } });
  const update = { type: "configuration_update", reasoning: { effort: "high" } };
  const later = await answered(keyspaces, {
    input: [user("Hello"), update, user("Go on.")],
    reasoning: { effort: "low" },
    ...compare(id),
  });
  expect(later.prompt_cache_diagnostics).toEqual({ type: "cache_hit" });
});
