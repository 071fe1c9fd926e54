import fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../core/events.ts";
import { runSync } from "../../../core/steps.ts";
import type { Assembled, InTurns, Keyspaces } from "../../port-state.ts";
import { runs, times } from "../../../../../test/support/runs.ts";
import { MapAssembled, MapKeyspace } from "../../../../../test/support/map-keyspaces.ts";
import { lean } from "../../profile.ts";
import { GrowingList, GrowingMap } from "./history.ts";
import { compactedItems } from "./input-items.ts";
import { forgetHistory } from "./recall.ts";
import { readStoredRequest } from "./stored-request.ts";
import { deleteResponse, findResponse } from "./stored-response.ts";

const inTurns: InTurns = async (work) => runSync(work);

/** Remembers nothing, so every history is read again. */
const forgetful: Assembled = { get: () => undefined, set() {}, delete() {}, unique: () => crypto.randomUUID() };

const user = (text: string): object => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });

const cachedUntil = (ttl: string | undefined): object => ({
  type: "message",
  role: "user",
  content: [
    {
      type: "input_text",
      text: "cached",
      prompt_cache_breakpoint: { mode: "explicit", ...(ttl !== undefined && { ttl }) },
    },
  ],
});

const call = (id: string, members: object): object => ({
  type: "function_call",
  call_id: id,
  name: `tool_${id}`,
  arguments: "{}",
  ...members,
});

const item = fc.oneof(
  fc.constantFrom("a", "b").map((text) => user(text)),
  fc.constantFrom(undefined, "30m", "12h", "5m").map(cachedUntil),
  fc
    .constantFrom("c1", "c2", "c3")
    .map((id) => ({ type: "function_call_output", call_id: id, output: `result ${id}` })),
  fc
    .constantFrom({ name: "tool_c1" }, { name: "news", namespace: "feed" }, {})
    .map((members) => ({ type: "function_call_output", ...members, output: "not asked for" })),
  fc
    .record({ id: fc.constantFrom("c1", "c2", "c3"), cut: fc.boolean(), async: fc.boolean() })
    .map(({ id, cut, async }) => call(id, { ...(cut && { status: "incomplete" }), ...(async && { async: true }) })),
  fc
    .constantFrom(
      { reasoning: { effort: "low" } },
      { reasoning: { effort: "high" }, text: { format: { type: "json_object" } } },
      { text: { format: { type: "json_schema", name: "n", schema: { type: "object" } } } },
    )
    .map((settings) => ({ type: "configuration_update", ...settings })),
  fc.constantFrom("web_search_call", "no_such_item").map((type) => ({ type, id: "ws_1" })),
  fc.constant({ role: "assistant", content: "said before" }),
  fc.constant({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "of another server" }),
  fc.constantFrom("f1", "f2").map((name) => ({ type: "additional_tools", tools: [{ type: "function", name }] })),
  fc.constantFrom([user("a")], [user("b"), user("a")]).map((items) => ({
    type: "compaction",
    encrypted_content: compactedItems(items as never),
  })),
);

const answers: readonly (readonly GenerationEvent[])[] = [
  [{ type: "text-delta", choice: 0, text: "Hello" }],
  [
    { type: "reasoning-delta", choice: 0, text: "Hm." },
    { type: "part-end", choice: 0, state: { kind: "signature", value: "signed" } },
  ],
  [0, 1].flatMap((index): GenerationEvent[] => [
    { type: "tool-call-start", choice: 0, index, id: `c${index + 1}`, name: `tool_c${index + 1}` },
    { type: "tool-call-delta", choice: 0, index, arguments: "{}" },
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ]),
  [],
  [],
];

type Step =
  | { readonly do: "continue"; readonly from: number; readonly input: readonly object[]; readonly answer: number }
  | { readonly do: "delete"; readonly which: number }
  | { readonly do: "evict" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("continue" as const),
      from: fc.nat(),
      input: fc.array(item, { maxLength: 4 }),
      answer: fc.nat({ max: answers.length - 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("evict" as const) }) },
);

test("what an engine gets is the same, whether histories are remembered or read again", async () => {
  let continued = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, forwards) => {
      const assembled = new MapAssembled();
      const remembering: Keyspaces = {
        stored: new MapKeyspace(),
        temporary: new MapKeyspace(),
        assembled,
        ofConnection: false,
      };
      const forgetting: Keyspaces = { ...remembering, assembled: forgetful };
      const ids: string[] = [];
      for (const [number, taken] of steps.entries()) {
        if (taken.do === "evict") {
          assembled.values.clear();
          continue;
        }
        if (taken.do === "delete") {
          const found = await findResponse(remembering, ids[taken.which % ids.length] ?? "");
          if (!found) continue;
          await deleteResponse(remembering.stored, found.stored);
          await forgetHistory(remembering, found.stored);
          continue;
        }
        // Most requests continue the latest response; the others make branches.
        const from = taken.from % 4 === 0 ? ids[taken.from % ids.length] : ids.at(-1);
        const body = {
          model: "m",
          input: taken.input,
          instructions: "Be brief.",
          tools: [{ type: "function", name: "tool_c1", async: true }],
          prompt_cache_options: { ttl: taken.from % 2 === 0 ? "30m" : "12h" },
          ...(from !== undefined && { previous_response_id: from }),
        };
        const read = (keyspaces: Keyspaces) =>
          readStoredRequest(body, "req_1", { profile: lean, forwards }, keyspaces, inTurns).then(
            (read) => ({ read, seen: JSON.stringify([read.request, read.warnings]) }),
            (error: unknown) => ({ read: undefined, seen: String(error) }),
          );
        const again = await read(forgetting);
        const { read: request, seen } = await read(remembering);
        expect(seen).toBe(again.seen);
        if (!request) continue;
        if (from !== undefined) continued++;
        const id = `resp_another_server_${number}`;
        const writer = request.streamWriter({
          profile: lean,
          created: 1_800_000_000,
          model: "m",
          settings: {},
          random: Math.random,
        });
        writer.write([
          { type: "start", choice: 0, source: { id } },
          ...(answers[taken.answer] ?? []),
          { type: "finish", choice: 0, reason: "stop" },
          { type: "end", end: { kind: "done" } },
        ]);
        await request.store();
        ids.push(id);
      }
    }),
    runs(100),
  );
  expect(continued).toBeGreaterThan(times(60));
});

test("lists and maps that grow from one beginning do not change each other", () => {
  const first = new GrowingList([1]).with([2]);
  const [left, right] = [first.with([3]), first.with([4, 5])];
  expect([first, left, right, left.with([6])].map((list) => list.toArray(1))).toEqual([
    [2],
    [2, 3],
    [2, 4, 5],
    [2, 3, 6],
  ]);
  const map = new GrowingMap<number>().with([["a", 1]]);
  const [one, other] = [map.with([["a", 2]]), map.with([["b", 3]])];
  expect([map, one, other].map((each) => [each.get("a"), each.get("b")])).toEqual([
    [1, undefined],
    [2, undefined],
    [1, 3],
  ]);
});

// Only the texts were counted, and short items take three times as much: 64 MiB were 230 MB.
test("the memory of a remembered history includes that of each item", async () => {
  let characters = 0;
  const assembled: Assembled = { ...forgetful, set: (_key, _value, size) => (characters = size) };
  const keyspaces: Keyspaces = {
    stored: new MapKeyspace(),
    temporary: new MapKeyspace(),
    assembled,
    ofConnection: false,
  };
  for (let turn = 0; turn < 3; turn++) {
    const input = Array.from({ length: 1000 }, () => ({ role: "user", content: "a" }));
    const body = { model: "m", input, ...(turn > 0 && { previous_response_id: `resp_another_server_${turn - 1}` }) };
    const read = await readStoredRequest(body, "req_1", {}, keyspaces, inTurns);
    const writer = read.streamWriter({
      profile: lean,
      created: 1_800_000_000,
      model: "m",
      settings: {},
      random: Math.random,
    });
    writer.write([
      { type: "start", choice: 0, source: { id: `resp_another_server_${turn}` } },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ]);
    await read.store();
  }
  // Each item has an id, a type, a role, and a text.
  expect(characters).toBeGreaterThan(2000 * 350);
  expect(characters).toBeLessThan(2000 * 500);
});

// Each link of a chain made messages of all items before it: 10,000 links took 131 s.
test("of a remembered history, only the last response is read as messages", async () => {
  const keyspaces: Keyspaces = {
    stored: new MapKeyspace(),
    temporary: new MapKeyspace(),
    assembled: new MapAssembled(),
    ofConnection: false,
  };
  let steps = 0;
  const counting: InTurns = async (work) => {
    for (;;) {
      const { done, value } = work.next();
      if (done === true) return value;
      steps++;
    }
  };
  const counts: number[] = [];
  for (let turn = 0; turn < 200; turn++) {
    const body = {
      model: "m",
      input: "Hello",
      ...(turn > 0 && { previous_response_id: `resp_another_server_${turn - 1}` }),
    };
    steps = 0;
    const read = await readStoredRequest(body, "req_1", {}, keyspaces, counting);
    counts.push(steps);
    const writer = read.streamWriter({
      profile: lean,
      created: 1_800_000_000,
      model: "m",
      settings: {},
      random: Math.random,
    });
    writer.write([
      { type: "start", choice: 0, source: { id: `resp_another_server_${turn}` } },
      { type: "text-delta", choice: 0, text: "Hello" },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ]);
    await read.store();
  }
  expect(counts.at(-1)).toBe(counts[10]);
});
