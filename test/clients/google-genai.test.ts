import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { QuestionHandlers } from "../../src/wire/core/engine.ts";
import { hashOf } from "../../src/serve/server/keys/key-ring.ts";
import { startChat } from "../doubles/chat-server.ts";
import type { Double } from "../doubles/chat-server.ts";
import { startGeminiNative } from "../doubles/gemini-native.ts";
import { ollamaNative } from "../doubles/ollama.ts";
import { startAnthropicSession, startOpenAiSession } from "../doubles/sessions.ts";
import { callsOf, finalText, runTool, tools, userText } from "../doubles/task.ts";
import type { TaskCall } from "../doubles/task.ts";
import { vllm } from "../doubles/vllm.ts";
import { serveConfig } from "../sessions/sources.ts";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { googleGenai, type Genai, type GenaiAnswer } from "../support/google-genai.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import type { Batch } from "../support/scripted-engine.ts";
import { dailyPart } from "../support/runs.ts";

const open = await googleGenai();

async function all(stream: AsyncIterable<GenaiAnswer>): Promise<GenaiAnswer[]> {
  const chunks: GenaiAnswer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** The answer's text. The library's own `text` writes a warning for each answer with calls. */
function textOf({ candidates }: GenaiAnswer): string {
  const parts = candidates?.[0]?.content?.parts ?? [];
  return parts.map(({ text = "", thought }) => (thought === true ? "" : text)).join("");
}

/** Google's own client for JavaScript against the programmed model. */
describe.skipIf(!open).each(dailyPart(["lean", "exact"], 2, 1))("@google/genai, wire %s", (wire) => {
  let server: FixtureServer;
  let ai: Genai;
  const model = "programmed";
  beforeAll(async () => {
    server = await serveFixture("--wire", wire);
    ai = (open as NonNullable<typeof open>)(server.url);
  });
  afterAll(() => server.close());

  const weather = {
    name: "get_weather",
    description: "Weather",
    parameters: { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] },
  };

  test("whole and streamed: the same text, with usage, version and id", async () => {
    const whole = await ai.models.generateContent({ model, contents: "#unicode" });
    expect(whole.text).toBe(said.unicode);
    expect(whole).toMatchObject({ modelVersion: model, candidates: [{ finishReason: "STOP" }] });
    expect(whole.usageMetadata).toMatchObject({
      promptTokenCount: expect.any(Number),
      candidatesTokenCount: expect.any(Number),
    });
    const chunks = await all(await ai.models.generateContentStream({ model, contents: "#unicode" }));
    expect(chunks.map(({ text = "" }) => text).join("")).toBe(said.unicode);
    expect(chunks.at(-1)).toMatchObject({ candidates: [{ finishReason: "STOP" }], usageMetadata: whole.usageMetadata });
    expect(new Set(chunks.map(({ responseId }) => responseId)).size).toBe(1);
  });

  test("a chat with a tool: the call, its result, the answer", async () => {
    const chat = ai.chats.create({ model, config: { tools: [{ functionDeclarations: [weather] }] } });
    const asked = await chat.sendMessage({ message: "#call" });
    const [call] = asked.functionCalls ?? [];
    expect(call).toMatchObject({ name: "get_weather", args: { city: "Paris" } });
    const result = { id: call?.id, name: "get_weather", response: { output: "sunny, 21 degrees" } };
    const chunks = await all(await chat.sendMessageStream({ message: [{ functionResponse: result }] }));
    expect(chunks.map(({ text = "" }) => text).join("")).toBe(said.toolAnswer);
    expect(chat.getHistory()).toHaveLength(3 + chunks.length);
  });

  test("thoughts, on request and off", async () => {
    const parts = async (thinkingConfig: object) => {
      const { candidates } = await ai.models.generateContent({
        model,
        contents: "#thought",
        config: { thinkingConfig },
      });
      return candidates?.[0]?.content?.parts ?? [];
    };
    const words = { text: "The user wants a number; forty-two will do.", thought: true };
    expect(await parts({ includeThoughts: true })).toEqual([words, { text: "My answer is forty-two." }]);
    expect(await parts({ includeThoughts: false })).toEqual([{ text: "My answer is forty-two." }]);
  });

  test("structured output, by both kinds of schema", async () => {
    const google = { type: "OBJECT", properties: { city: { type: "STRING", enum: ["Paris"] } }, required: ["city"] };
    const json = { type: "object", properties: { city: { enum: ["Paris"] } }, required: ["city"] };
    for (const schema of [{ responseSchema: google }, { responseJsonSchema: json }]) {
      const config = { responseMimeType: "application/json", temperature: 0, ...schema };
      const { text = "" } = await ai.models.generateContent({ model, contents: "#json", config });
      expect(JSON.parse(text)).toEqual({ city: "Paris" });
    }
  });

  test("limits, stops and candidates", async () => {
    const ask = (config: object) => ai.models.generateContent({ model, contents: "#plain", config });
    expect((await ask({ maxOutputTokens: 3 })).candidates?.[0]?.finishReason).toBe("MAX_TOKENS");
    expect((await ask({ stopSequences: ["jumps"] })).text).toBe("The quick brown fox ");
    expect((await ask({ candidateCount: 2 })).candidates).toHaveLength(2);
  });

  test("models, counts, and what is refused", async () => {
    const names: unknown[] = [];
    for await (const { name } of await ai.models.list()) names.push(name);
    expect(names).toEqual(["models/programmed"]);
    expect(await ai.models.get({ model })).toMatchObject({ name: "models/programmed" });
    const { totalTokens } = await ai.models.countTokens({ model, contents: "#plain" });
    expect(totalTokens).toBeGreaterThan(1);
    await expect(ai.models.generateContent({ model: "gone", contents: "Hi" })).rejects.toMatchObject({ status: 404 });
    await expect(ai.models.embedContent({ model, contents: "Hi" })).rejects.toMatchObject({ status: 404 });
    await expect(
      all(
        await ai.models
          .generateContentStream({ model, contents: "#plain", config: { maxOutputTokens: -1 } })
          .catch(thrown),
      ),
    ).rejects.toMatchObject({ status: 400 });
  });
});

/** An iteration that fails with an error. */
function thrown(error: unknown): AsyncIterable<GenaiAnswer> {
  // eslint-disable-next-line require-yield
  return (async function* () {
    throw error;
  })();
}

describe.skipIf(!open)("@google/genai", () => {
  const client = open as NonNullable<typeof open>;

  test("an abort ends the generation, and embeddings come in order", async () => {
    const engine = new ScriptedEngine((_, signal) => endless(signal), "m");
    const embed: QuestionHandlers["embed"] = async ({ inputs }) => ({
      vectors: inputs.map((_, at) => [at, 1]),
      promptTokens: 2,
    });
    Object.assign(engine.handlers, { embed });
    const server = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine }] });
    try {
      const abort = new AbortController();
      const stream = await client(server.url).models.generateContentStream({
        model: "m",
        contents: "Hi",
        config: { abortSignal: abort.signal },
      });
      for await (const chunk of stream) {
        expect(chunk.text).toBe("x");
        abort.abort();
        break;
      }
      await until(() => engine.running === 0, "the generation has ended");
      const { embeddings } = await client(server.url).models.embedContent({ model: "m", contents: ["a", "b"] });
      expect(embeddings).toEqual([{ values: [0, 1] }, { values: [1, 1] }]);
    } finally {
      await server.close(0);
    }
  });

  test("keys: in the header; a wrong one and none are refused in Google's form", async () => {
    const engine = new ScriptedEngine(() => answer(["Yes."]), "m");
    const keys = [{ name: "ann", hash: `sha256:${await hashOf("sk-ann-12345")}` }];
    const server = await createServer({
      port: 0,
      logLevel: "silent",
      keys,
      models: [{ kind: "engine", engine }],
    } as never);
    try {
      const ask = (key: string) => client(server.url, key).models.generateContent({ model: "m", contents: "Hi" });
      expect((await ask("sk-ann-12345")).text).toBe("Yes.");
      await expect(ask("wrong")).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("API_KEY_INVALID") as string,
      });
      const byQuery = await fetch(`${server.url}/v1/models?key=sk-ann-12345`);
      expect(await byQuery.json()).toMatchObject({ models: [{ name: "models/m" }] });
      expect((await fetch(`${server.url}/v1beta/models`)).status).toBe(403);
    } finally {
      await server.close(0);
    }
  });
});

async function* endless(signal: AbortSignal): AsyncGenerator<Batch> {
  yield [
    { type: "start", choice: 0 },
    { type: "text-delta", choice: 0, text: "x" },
  ];
  await once(signal, "abort");
}

/** The task of the sessions, with a chat of the library: parallel calls, a result that is an error, reasoning between calls. */
describe.skipIf(!open)("@google/genai runs tools in a loop", () => {
  const doubles: Double[] = [];
  const folder = mkdtempSync(join(tmpdir(), "truewire-genai-"));
  let server: RunningTruewire;
  beforeAll(async () => {
    writeFileSync(join(folder, "echo.mjs"), program);
    const upstreams: readonly (readonly [name: string, double: Double, model: string, api: string, key?: string])[] = [
      ["chat", await startChat(vllm), "qwen3.5", "chat"],
      ["responses", await startOpenAiSession("A"), "gpt-5", "responses", "sk-A"],
      ["messages", await startAnthropicSession("sk-ant-A"), "claude-opus-4-6", "messages", "sk-ant-A"],
      ["ollama", await startChat(ollamaNative), "qwen3", "ollama"],
      ["gemini", await startGeminiNative(), "gemini-3-pro-preview", "gemini"],
    ];
    doubles.push(...upstreams.map(([, double]) => double));
    server = await serveConfig({
      models: [
        { kind: "program", name: "program", program: join(folder, "echo.mjs") },
        ...upstreams.map(([name, { url }, model, api, key]) => ({
          kind: "upstream",
          name,
          url,
          api,
          models: { [name]: model },
          ...(key !== undefined && { key }),
        })),
      ],
    });
  });
  afterAll(async () => {
    await server.stop();
    for (const double of doubles) await double.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(["chat", "responses", "messages", "ollama", "gemini"])("over %s, streamed and not", async (model) => {
    const chat = (open as NonNullable<typeof open>)(server.url).chats.create({
      model,
      config: {
        tools: [
          { functionDeclarations: tools.map(({ schema, ...tool }) => ({ ...tool, parametersJsonSchema: schema })) },
        ],
        thinkingConfig: { includeThoughts: true },
      },
    });
    for (const turn of [1, 2, 3]) {
      let message: unknown = userText("g", turn);
      const ran: TaskCall[] = [];
      let text = "";
      for (let step = 0; step < 6; step++) {
        const chunks =
          step % 2 === 0 ? await all(await chat.sendMessageStream({ message })) : [await chat.sendMessage({ message })];
        text = chunks.map(textOf).join("");
        const calls = chunks.flatMap(({ functionCalls = [] }) => functionCalls);
        if (calls.length === 0) break;
        message = calls.map(({ id, name = "", args = {} }) => {
          ran.push({ name, input: args });
          const result = runTool({ name, input: args });
          return {
            functionResponse: { id, name, response: result.isError ? { error: result.text } : { output: result.text } },
          };
        });
      }
      expect(text).toBe(finalText(turn));
      expect(ran).toEqual(callsOf("g", turn));
    }
  });

  test("no server has refused a request, or lost a call", () => {
    const refusals = doubles.flatMap((double) => double.refusals);
    expect(refusals.filter((words) => !words.includes("missing a thought_signature"))).toEqual([]);
    expect(doubles.flatMap((double) => double.lost).filter((words) => words.includes("call"))).toEqual([]);
  });

  test("over a program", async () => {
    const ai = (open as NonNullable<typeof open>)(server.url);
    const { text } = await ai.models.generateContent({
      model: "program",
      contents: "Hi",
      config: { systemInstruction: "Be brief." },
    });
    expect(text).toBe("system: Be brief. user: Hi");
  });
});

const program = `export default async function* ({ messages }) {
  yield messages.map(({ role, content }) => role + ": " + content).join(" ");
}
`;
