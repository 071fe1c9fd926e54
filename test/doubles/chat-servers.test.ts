import { describe, expect, test } from "vitest";
import { closeAfterTest } from "../support/close-after-test.ts";
import { rawChat } from "../sessions/clients/raw-chat.ts";
import { rawOllama } from "../sessions/clients/raw-ollama.ts";
import type { Double, Json } from "./chat-server.ts";
import { tools, userText } from "./task.ts";
import { runSession } from "../sessions/session.ts";
import { sources } from "../sessions/sources.ts";

/*
 * The doubles themselves, without Truewire: a client that returns everything has no trouble, and whatever else a client does with the state is
 * refused in the server's words, or counted as lost where the server refuses nothing.
 */

async function start(name: string): Promise<{ double: Double; root: string; model: string }> {
  const source = sources.find((each) => each.name === name);
  if (!source) throw new Error(`no source ${name}`);
  const double = await source.start();
  closeAfterTest(() => double.close());
  return { double, root: double.url.replace(/\/v1$/, ""), model: source.model };
}

const four = (model: string): string[] => Array.from({ length: 4 }, () => model);

// LiteLLM's double refused the blocks of its own streams (BerriAI/litellm#29428), which LiteLLM 1.108.7 takes.
test.each(["Gemini 3", "OpenRouter, Gemini 3", "OpenRouter, Claude", "vLLM", "LiteLLM, Claude"])(
  "%s: a client that returns everything is refused nothing",
  async (name) => {
    const { double, root, model } = await start(name);
    expect(await runSession(rawChat("everything"), root, four(model))).toMatchObject({ turnsDone: 4, turnsTried: 4 });
    expect([double.turns, double.refusals, double.lost]).toEqual([12, [], []]);
  },
);

// The member must be there although the answer had none: agents stop at the first call without a thought.
test.each(["DeepSeek", "Kimi"])(
  "%s refuses what it has answered itself, if a call came without reasoning",
  async (name) => {
    const { double, root, model } = await start(name);
    const { turnsDone, problem } = await runSession(rawChat("everything"), root, four(model));
    expect([turnsDone, double.turns]).toEqual([0, 2]);
    expect(problem).toContain("reasoning_content");
  },
);

test("Ollama: a client that returns everything loses nothing", async () => {
  const { double, root, model } = await start("Ollama");
  expect(await runSession(rawOllama("everything"), root, four(model))).toMatchObject({ turnsDone: 4, turnsTried: 4 });
  expect([double.turns, double.refusals, double.lost]).toEqual([12, [], []]);
});

describe("a client that returns nothing", () => {
  test.each([
    ["Gemini 3", "Function call is missing a thought_signature in functionCall parts."],
    ["OpenRouter, Gemini 3", "Gemini models require OpenRouter reasoning details to be preserved in each request."],
    ["OpenRouter, Claude", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"],
    ["DeepSeek", "The `reasoning_content` in the thinking mode must be passed back to the API."],
    ["Kimi", "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"],
    ["LiteLLM, Claude", "Expected `thinking` or `redacted_thinking`, but found `text`"],
  ])("is refused by %s", async (name, words) => {
    const { root, model } = await start(name);
    const { turnsDone, problem } = await runSession(rawChat("nothing"), root, four(model));
    expect(turnsDone).toBe(0);
    expect(problem).toContain(words);
  });

  test("loses reasoning over vLLM", async () => {
    const { double, root, model } = await start("vLLM");
    await runSession(rawChat("nothing"), root, four(model));
    expect(double.refusals).toEqual([]);
    expect(double.lost.length).toBeGreaterThan(0);
  });
});

/** The first answer over a double, and the function that sends it back as changed by the test. */
async function firstAnswer(name: string) {
  const { root, model } = await start(name);
  const user = { role: "user", content: userText("doubles", 1) };
  const send = async (messages: readonly unknown[]): Promise<string> => {
    const response = await fetch(`${root}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({
        model,
        messages: [user, ...messages],
        tools: tools.map(({ name: tool, schema }) => ({
          type: "function",
          function: { name: tool, parameters: schema },
        })),
      }),
    });
    return response.text();
  };
  const { choices } = JSON.parse(await send([])) as { choices: { message: Json & { tool_calls: { id: string }[] } }[] };
  const message = choices[0]?.message;
  if (!message) throw new Error("no answer");
  const results = message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "A door." }));
  return { message, sendBack: (changed: unknown) => send([changed, ...results]) };
}

/** A copy with another string in the place of each that ends in two `=`: base 64 of a signature. */
function withOther(message: Json, change: (signature: string) => string): Json {
  return JSON.parse(
    JSON.stringify(message, (_, value: unknown) =>
      typeof value === "string" && value.length > 80 && value.endsWith("==") ? change(value) : value,
    ),
  ) as Json;
}

describe.each([
  ["Gemini 3", "Corrupted thought signature."],
  ["OpenRouter, Gemini 3", "Corrupted thought signature."],
  ["OpenRouter, Claude", "Invalid `signature` in `thinking` block"],
  ["LiteLLM, Claude", "Invalid `signature` in `thinking` block"],
])("%s refuses", (name, words) => {
  test("an invented signature, and takes its own", async () => {
    const { message, sendBack } = await firstAnswer(name);
    expect(await sendBack(message)).not.toContain(words);
    expect(await sendBack(withOther(message, (signature) => `A${signature.slice(1, -3)}A==`))).toContain(words);
  });

  test("a signature of another server of its kind", async () => {
    const { message: foreign } = await firstAnswer(name);
    const { sendBack } = await firstAnswer(name);
    expect(await sendBack(foreign)).toContain(words);
  });
});

test("Gemini takes the sentinel for calls of other models", async () => {
  const { message, sendBack } = await firstAnswer("Gemini 3");
  const sentinel = withOther(message, () => "skip_thought_signature_validator");
  expect(await sendBack(sentinel)).toContain('"read"');
});

test("OpenRouter and LiteLLM refuse reasoning that was changed", async () => {
  for (const name of ["OpenRouter, Gemini 3", "OpenRouter, Claude", "LiteLLM, Claude"]) {
    const { message, sendBack } = await firstAnswer(name);
    const changed = JSON.parse(JSON.stringify(message).replaceAll("two doors", "two  doors")) as Json;
    expect(await sendBack(changed)).toMatch(/Corrupted thought signature|Invalid `signature`/);
  }
});

test("DeepSeek and Kimi take an empty text for reasoning that another model had", async () => {
  for (const name of ["DeepSeek", "Kimi"]) {
    const { message, sendBack } = await firstAnswer(name);
    expect(await sendBack({ ...message, reasoning_content: "" })).toContain('"read"');
  }
});
