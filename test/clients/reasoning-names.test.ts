import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIProvider, Runner } from "@openai/agents";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

const thought = "Hmm, a greeting.";

/** What each client shows of the thought, in a stream and whole. */
interface Shown {
  readonly streamed: string | undefined;
  readonly whole: string | undefined;
}

/**
 * Under which names clients read thoughts. `reasoning_content` alone is the default because of what the second case shows: a client that
 * reads either name shows a streamed thought twice where both are sent. One delta with both is worse: some show it twice, too
 * (https://github.com/MoonshotAI/kimi-code/issues/3928), and others fail (https://github.com/aaif-goose/goose/pull/8715).
 */
describe.each([
  {
    fields: undefined,
    aiSdk: { streamed: thought, whole: thought },
    langchain: { streamed: thought, whole: thought },
    agents: undefined,
    sdk: { reasoning_content: thought },
  },
  {
    fields: ["reasoning_content", "reasoning"],
    aiSdk: { streamed: thought + thought, whole: thought },
    langchain: { streamed: thought, whole: thought },
    agents: thought,
    sdk: { reasoning_content: thought, reasoning: thought },
  },
  {
    fields: ["reasoning"],
    aiSdk: { streamed: thought, whole: thought },
    langchain: { streamed: undefined, whole: undefined },
    agents: thought,
    sdk: { reasoning: thought },
  },
])("thoughts as $fields", ({ fields, aiSdk, langchain, agents, sdk }) => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-names-"));
  let server: RunningTruewire;
  let baseURL: string;
  beforeAll(async () => {
    const model = { name: "scripted", kind: "program", program: resolve("test/fixtures/turns-program.js") };
    const file = join(folder, "truewire.yaml");
    writeFileSync(file, stringify({ port: 0, models: [{ ...model, ...(fields && { reasoningFields: fields }) }] }));
    const turns = JSON.stringify([[{ type: "reasoning", text: thought }, "Hello."]]);
    server = await startTruewire(["--config", file], { env: { TURNS: turns, ASKED: join(folder, "asked.jsonl") } });
    baseURL = `${server.url}/v1`;
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("the AI SDK", async () => {
    const model = createOpenAICompatible({ name: "truewire", baseURL })("scripted");
    const stream = streamText({ model, prompt: "Hi" });
    expect(await stream.text).toBe("Hello.");
    const shown: Shown = {
      streamed: await stream.reasoningText,
      whole: (await generateText({ model, prompt: "Hi" })).reasoningText,
    };
    expect(shown).toEqual(aiSdk);
  });

  test("LangChain.js", async () => {
    const model = new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } });
    let streamed: string | undefined;
    for await (const { additional_kwargs: more } of await model.stream("Hi")) {
      const piece = more["reasoning_content"];
      if (typeof piece === "string") streamed = (streamed ?? "") + piece;
    }
    const { additional_kwargs: more } = await model.invoke("Hi");
    expect({ streamed, whole: more["reasoning_content"] }).toEqual(langchain);
  });

  test("the Agents SDK by chat", async () => {
    const modelProvider = new OpenAIProvider({ baseURL, apiKey: "none", useResponses: false });
    const runner = new Runner({ modelProvider, model: "scripted", tracingDisabled: true });
    const { newItems } = await runner.run(new Agent({ name: "Desk" }), "Hi");
    const item = newItems.find(({ type }) => type === "reasoning_item");
    const shown = JSON.stringify(item?.rawItem ?? null);
    if (agents === undefined) expect(item).toBeUndefined();
    else expect(shown).toContain(agents);
  });

  test("OpenAI's SDK passes on what there is", async () => {
    const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
    const { choices } = await client.chat.completions.create({
      model: "scripted",
      messages: [{ role: "user", content: "Hi" }],
    });
    const { role, content, ...more } = choices[0]?.message ?? {};
    expect([role, content]).toEqual(["assistant", "Hello."]);
    expect(more).toMatchObject(sdk);
    expect(Object.keys(more).filter((name) => name.startsWith("reasoning"))).toEqual(Object.keys(sdk));
  });
});
