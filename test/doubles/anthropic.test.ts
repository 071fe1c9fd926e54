import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../../src/judge/between/facts.ts";
import { cachedShare, promptPrice, startAnthropic } from "./anthropic.ts";
import type { AnthropicDouble, DoubleTurn } from "./anthropic.ts";

/* The double itself: other tests trust what it refuses and what it charges. */

const words = (count: number, name: string): string => `${name} `.repeat(count);
const long = words(2000, "rule");
const tool = { name: "read", description: "Reads a file.", input_schema: { type: "object" } };
const enabled = { type: "enabled", budget_tokens: 1024 };
const use = { type: "tool_use", id: "toolu_a", name: "read", input: {} };
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_a", content: "ok" }] };
const user = { role: "user", content: "Hi" };
const ephemeral = { type: "ephemeral" };
const hour = { type: "ephemeral", ttl: "1h" };

let double: AnthropicDouble;
let time = 0;
const turn: DoubleTurn = { thinking: "I must read it.", text: "I read.", calls: [{ name: "read", input: { a: "é" } }] };
beforeEach(async () => {
  time = 0;
  double = await startAnthropic({
    accounts: { "key-a": "a", "key-b": "b" },
    answer: (_, index) => (index % 2 === 1 ? { ...turn, redacted: true } : turn),
    now: () => time,
  });
});
afterEach(() => double.close());

async function ask(members: Json, key = "key-a"): Promise<{ status: number; text: string; body: Json }> {
  const response = await fetch(`${double.url}/messages`, {
    method: "POST",
    headers: { "x-api-key": key, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 4096, messages: [user], ...members }),
  });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith("{") ? (JSON.parse(text) as Json) : {} };
}

describe("what the double refuses", () => {
  test.each<[Json, string]>([
    [{ max_tokens: undefined }, "max_tokens: Field required"],
    [{ from_2027: 1 }, "from_2027: Extra inputs are not permitted"],
    [{ messages: [user, { role: "assistant", content: [use] }, user] }, "`tool_use` ids were found without"],
    [{ messages: [user, result] }, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_a"],
    [{ messages: [{ role: "user", content: [{ type: "text", text: "" }] }] }, "text content blocks must be non-empty"],
    [{ thinking: enabled, messages: [user, { role: "assistant", content: [use] }, result] }, "but found `tool_use`"],
    [{ thinking: enabled, max_tokens: 1024 }, "`max_tokens` must be greater than"],
    [{ thinking: enabled, temperature: 0.5 }, "`temperature` may only be set to 1"],
    [{ thinking: { type: "adaptive" } }, "adaptive thinking is not supported on this model"],
    [
      { messages: [user, { role: "assistant", content: [{ type: "thinking", thinking: "x" }, use] }, result] },
      "messages.1.content.0.thinking.signature: Field required",
    ],
    [{ messages: [user, { role: "assistant", content: [use, use] }, result] }, "`tool_use` ids must be unique"],
    [
      {
        messages: [
          user,
          { role: "assistant", content: [{ ...use, id: "a b" }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "a b", content: "ok" }] },
        ],
      },
      "messages.1.content.0.tool_use.id: String should match pattern",
    ],
    [{ model: "claude-3-5-haiku-20241022", thinking: enabled }, "thinking: This model does not support thinking."],
    [
      {
        cache_control: ephemeral,
        system: Array.from({ length: 4 }, () => ({ type: "text", text: "a", cache_control: ephemeral })),
      },
      "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ],
    [{ thinking: enabled, model: "claude-opus-4-8" }, '"thinking.type.enabled" is not supported'],
    [{ context_management: { edits: [{ type: "clear_thinking_20251015" }] } }, "strategy requires `thinking`"],
    [
      { messages: [user, { role: "assistant", content: [{ type: "thinking", thinking: "x", signature: "s" }, use] }] },
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    ],
    [
      { messages: [user, { role: "assistant", content: [{ type: "redacted_thinking", data: "s" }, use] }] },
      "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
    ],
    [
      { system: Array.from({ length: 5 }, () => ({ type: "text", text: "a", cache_control: ephemeral })) },
      "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ],
    [
      {
        tools: [{ ...tool, cache_control: ephemeral }],
        system: [{ type: "text", text: "a", cache_control: hour }],
      },
      "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ],
  ])("%j: %s", async (members, refusal) => {
    const { status, body } = await ask(members);
    expect(status).toBe(400);
    expect(body).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    expect(double.refusals).toEqual([expect.stringContaining(refusal)]);
  });

  test("thinking is taken back from the account that it was given to, and from no other", async () => {
    for (const _ of ["thinking", "redacted_thinking"]) {
      const { body } = await ask({ thinking: enabled, tools: [tool] });
      const content = body["content"] as Json[];
      const id = content.at(-1)?.["id"];
      const back = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "ok" }] };
      const messages = [user, { role: "assistant", content }, back];
      expect((await ask({ thinking: enabled, tools: [tool], messages }, "key-b")).status).toBe(400);
      const [first, ...rest] = content;
      const changed = { ...first, ...("thinking" in (first ?? {}) ? { thinking: "Other." } : { data: "b3RoZXI=" }) };
      const other = [user, { role: "assistant", content: [changed, ...rest] }, back];
      expect((await ask({ thinking: enabled, tools: [tool], messages: other })).status).toBe(400);
      expect((await ask({ messages, tools: [tool] })).text).toContain("When thinking is disabled");
      expect((await ask({ thinking: enabled, tools: [tool], messages })).status).toBe(200);
      // The index of answers stays odd or even.
      await ask({});
      await ask({});
      await ask({});
    }
  });

  // Without interleaved thinking, a model thinks only at the beginning of a tool loop.
  test("a later step of a tool loop needs no thinking if the loop begins with it", async () => {
    const { body } = await ask({ thinking: enabled, tools: [tool] });
    const content = body["content"] as Json[];
    const back = (id: unknown) => ({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content: "ok" }],
    });
    const messages = [
      user,
      { role: "assistant", content },
      back(content.at(-1)?.["id"]),
      { role: "assistant", content: [use] },
      back("toolu_a"),
    ];
    expect((await ask({ thinking: enabled, tools: [tool], messages })).status).toBe(200);
  });
});

describe("what the double charges", () => {
  const step = (count: number): Json[] =>
    Array.from({ length: count }, (_, at) => [
      { role: "user", content: `Question ${at}` },
      { role: "assistant", content: `Answer ${at}` },
    ]).flat();
  const asked = (turns: number, members: Json): Json => ({
    system: long,
    messages: [...step(turns), user],
    ...members,
  });

  test("without a mark, nothing is cached; with the mark of the request, all but the last step is", async () => {
    await ask(asked(0, {}));
    await ask(asked(1, {}));
    expect(cachedShare(double.usages)).toBe(0);
    await ask(asked(1, { cache_control: ephemeral }));
    await ask(asked(2, { cache_control: ephemeral }));
    const [, , third, fourth] = double.usages;
    expect(third?.read).toBe(0);
    expect(third?.written.short).toBe(third?.total);
    expect(fourth?.read).toBe(0);
    // The last message of the third request is not in the fourth, so that the prefix at its mark is not, either.
    await ask(
      asked(3, { cache_control: ephemeral, messages: [...step(2), user, { role: "assistant", content: "A" }, user] }),
    );
    expect(double.usages[4]?.read).toBeGreaterThan(2000);
    expect(promptPrice(double.usages.slice(4))).toBeLessThan(promptPrice(double.usages.slice(3, 4)) / 5);
  });

  test("a mark looks at twenty positions, ends after its time, and caches no short prompt", async () => {
    const marked = { cache_control: ephemeral };
    await ask({ ...marked, messages: [user] });
    expect(double.usages[0]).toMatchObject({ written: { hour: 0, short: 0 } });
    const turns = (count: number) => ({ system: long, ...marked, messages: [...step(count), user] });
    const withHistory = (count: number) => ({ system: long, ...marked, messages: [...step(count)].slice(0, -1) });
    await ask(withHistory(1));
    await ask(withHistory(10));
    expect(double.usages[2]?.read).toBeGreaterThan(2000);
    await ask(withHistory(40));
    expect(double.usages[3]?.read).toBe(0);
    time = 300_001;
    await ask(withHistory(11));
    expect(double.usages[4]?.read).toBe(0);
    await ask(turns(11), "key-b");
    expect(double.usages[5]?.read).toBe(0);
  });

  test("a change of the tools or of the thinking begins anew", async () => {
    const marked = { cache_control: ephemeral, system: long, messages: [user] };
    const marks = { system: [{ type: "text", text: long, cache_control: ephemeral }], messages: [user] };
    await ask(marked);
    await ask({ ...marked, tools: [tool] });
    expect(double.usages[1]?.read).toBe(0);
    await ask({ ...marked, thinking: enabled });
    expect(double.usages[2]?.read).toBe(0);
    await ask(marks);
    await ask({ ...marks, thinking: enabled });
    expect(double.usages[4]?.read).toBeGreaterThan(2000);
  });
});

test("a stream has the same message", async () => {
  const whole = await ask({ thinking: enabled, tools: [tool] });
  const { text } = await ask({ thinking: enabled, tools: [tool], stream: true });
  const events = text
    .split("\n")
    .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as Json] : []));
  expect(events[0]).toMatchObject({ type: "message_start" });
  expect(events.at(-1)).toEqual({ type: "message_stop" });
  const deltas = events.map(({ delta }) => (delta ?? {}) as Json);
  expect(deltas.map(({ partial_json: json }) => json ?? "").join("")).toBe('{"a":"é"}');
  expect(deltas.map(({ text }) => text ?? "").join("")).toBe("I read.");
  expect(whole.body).toMatchObject({ stop_reason: "tool_use" });
});
