import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { serveFixture, type FixtureServer } from "../support/fixture-server.ts";
import { startScripted } from "../upstream/scripted-server.ts";

/** What vLLM and llama.cpp tell beside an answer, asked for with the official client. */
let server: FixtureServer;
let client: OpenAI;
beforeAll(async () => {
  server = await serveFixture("--slots", "2", "--batch-size", "64");
  client = new OpenAI({ baseURL: server.baseURL, apiKey: "none", maxRetries: 0 });
});
afterAll(() => server.close());

const plain = "The quick brown fox jumps over the lazy dog.";
const user = (content: string): { role: "user"; content: string }[] => [{ role: "user", content }];

interface Told {
  readonly prompt_token_ids?: number[];
  readonly prompt_logprobs?: (Record<string, { logprob: number; rank: number | null; decoded_token: string }> | null)[];
  readonly choices: { readonly token_ids?: number[]; readonly prompt_token_ids?: number[] }[];
  readonly prompt_progress?: { total: number; cache: number; processed: number; time_ms: number };
  readonly usage?: { readonly completion_tokens: number; readonly prompt_tokens: number } | null;
}

type Choice = OpenAI.CompletionChoice & Told["choices"][number];

async function textOf(tokens: readonly number[]): Promise<string> {
  const response = await fetch(`${server.url}/detokenize`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tokens }),
  });
  return ((await response.json()) as { content: string }).content;
}

async function chunksOf(body: object): Promise<(OpenAI.ChatCompletionChunk & Told)[]> {
  const stream = await client.chat.completions.create({
    model: "programmed",
    messages: user("#plain"),
    ...body,
    stream: true,
  } as OpenAI.ChatCompletionCreateParamsStreaming);
  const chunks: (OpenAI.ChatCompletionChunk & Told)[] = [];
  for await (const chunk of stream) chunks.push(chunk as OpenAI.ChatCompletionChunk & Told);
  return chunks;
}

describe("return_token_ids", () => {
  test("chat: the ids of prompt and answer, which are those of the texts", async () => {
    const whole = (await client.chat.completions.create({
      model: "programmed",
      messages: user("#plain"),
      return_token_ids: true,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming)) as OpenAI.ChatCompletion & Told;
    expect(await textOf(whole.prompt_token_ids ?? [])).toContain("<|im_start|>user\n#plain<|im_end|>");
    expect(whole.prompt_token_ids).toHaveLength(whole.usage?.prompt_tokens ?? -1);
    const ids = whole.choices[0]?.token_ids ?? [];
    expect(ids).toHaveLength(whole.usage?.completion_tokens ?? -1);
    expect(await textOf(ids)).toBe(`${plain}<|im_end|>`);

    const chunks = await chunksOf({ return_token_ids: true });
    expect(chunks.filter((chunk) => chunk.prompt_token_ids !== undefined)).toEqual([chunks[0]]);
    expect(chunks[0]?.prompt_token_ids).toEqual(whole.prompt_token_ids);
    expect(
      chunks.flatMap((chunk) => (chunk.choices[0] as { token_ids?: number[] } | undefined)?.token_ids ?? []),
    ).toEqual(ids);
    for (const chunk of chunks.filter(({ choices }) => choices[0]?.delta.content))
      expect(await textOf((chunk.choices[0] as { token_ids?: number[] }).token_ids ?? [])).toBe(
        chunk.choices[0]?.delta.content,
      );
  });

  test("completions: beside each choice, of its own prompt", async () => {
    const body = { model: "programmed", prompt: ["<|script:plain|>", "<|script:json|>"], n: 2, max_tokens: 50 };
    const whole = (await client.completions.create({
      ...body,
      return_token_ids: true,
    } as OpenAI.CompletionCreateParamsNonStreaming)) as unknown as { choices: Choice[] };
    for (const [at, choice] of whole.choices.entries()) {
      expect(await textOf(choice.prompt_token_ids ?? [])).toBe(body.prompt[Math.floor(at / 2)]);
      expect(await textOf(choice.token_ids ?? [])).toBe(`${choice.text}<|im_end|>`);
    }
    const stream = await client.completions.create({
      ...body,
      stream: true,
      return_token_ids: true,
    } as OpenAI.CompletionCreateParamsStreaming);
    const ids = [[], [], [], []] as number[][];
    const prompts: (number[] | undefined)[] = [];
    for await (const chunk of stream)
      for (const choice of chunk.choices as Choice[]) {
        prompts[choice.index] ??= choice.prompt_token_ids;
        ids[choice.index]?.push(...(choice.token_ids ?? []));
      }
    expect(ids).toEqual(whole.choices.map(({ token_ids: own }) => own));
    expect(prompts).toEqual(whole.choices.map(({ prompt_token_ids: own }) => own));
  });

  test("who did not ask is told nothing", async () => {
    for (const chunk of await chunksOf({})) expect(JSON.stringify(chunk)).not.toMatch(/token_ids|prompt_/);
  });
});

describe("prompt_logprobs", () => {
  test("for each token of the prompt: itself, and the likeliest in its place; null for the first", async () => {
    const whole = (await client.completions.create({
      model: "programmed",
      prompt: "<|script:odds|>red<|im_end|>",
      max_tokens: 1,
      prompt_logprobs: 2,
    } as OpenAI.CompletionCreateParamsNonStreaming)) as OpenAI.Completion & {
      choices: { prompt_logprobs: NonNullable<Told["prompt_logprobs"]> }[];
    };
    const told = whole.choices[0]?.prompt_logprobs ?? [];
    expect(told).toHaveLength(whole.usage?.prompt_tokens ?? -1);
    expect(told[0]).toBeNull();
    const second = Object.values(told[1] ?? {});
    // "r" itself is not what the script draws, so it stands beside the two likeliest.
    expect(second.map(({ decoded_token: text }) => text).sort()).toEqual(["green", "r", "red"]);
    expect(second.find(({ decoded_token: text }) => text === "red")?.logprob).toBeCloseTo(Math.log(0.7), 3);
    expect(second.find(({ decoded_token: text }) => text === "red")?.rank).toBe(1);
    expect(second.find(({ decoded_token: text }) => text === "r")?.rank).toBeNull();
  });

  test("chat has them beside the choices; a stream has none, and says so", async () => {
    const body = { model: "programmed", messages: user("#plain"), prompt_logprobs: 0 };
    const whole = (await client.chat.completions.create(
      body as OpenAI.ChatCompletionCreateParamsNonStreaming,
    )) as OpenAI.ChatCompletion & Told;
    expect(whole.prompt_logprobs).toHaveLength(whole.usage?.prompt_tokens ?? -1);
    for (const place of whole.prompt_logprobs?.slice(1) ?? []) expect(Object.keys(place ?? {})).toHaveLength(1);
    await expect(chunksOf({ prompt_logprobs: 0 })).rejects.toThrow(/'prompt_logprobs'.*stream/);
  });
});

test("return_progress: a stream tells how far the prompt is, in llama.cpp's words", async () => {
  const chunks = await chunksOf({ messages: user(`${"words ".repeat(60)} #plain`), return_progress: true });
  const told = chunks.flatMap(({ prompt_progress: progress }) => (progress ? [progress] : []));
  expect(told.length).toBeGreaterThan(2);
  const total = told[0]?.total ?? 0;
  expect(total).toBeGreaterThan(360);
  for (const [at, progress] of told.entries()) {
    expect(progress).toMatchObject({ total, cache: told[0]?.cache });
    expect(progress.processed).toBeGreaterThanOrEqual(told[at - 1]?.processed ?? progress.cache);
  }
  expect(told.at(-1)?.processed).toBe(total);
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(plain);
});

test("continuous_usage_stats: every chunk has the usage so far", async () => {
  const chunks = await chunksOf({ stream_options: { include_usage: true, continuous_usage_stats: true } });
  const counts = chunks.map(({ usage }) => usage?.completion_tokens ?? -1);
  expect(counts).toEqual([...counts].sort((a, b) => a - b));
  expect(Math.min(...counts)).toBeGreaterThan(-1);
  expect(new Set(counts).size).toBeGreaterThan(5);
  const alone = await chunksOf({ stream_options: { continuous_usage_stats: true } });
  for (const chunk of alone) expect(chunk.usage ?? null).toBeNull();
});

// The model tells of several tokens together: see "Speed" in docs/local-models.md.
test("a stream has a chunk for each token, however many come at once", async () => {
  const chunks = await chunksOf({ stream_options: { include_usage: true } });
  const tokens = chunks.at(-1)?.usage?.completion_tokens ?? 0;
  expect(tokens).toBeGreaterThan(5);
  // The one that ends the turn has no text.
  expect(chunks.filter(({ choices }) => choices[0]?.delta.content)).toHaveLength(tokens - 1);
});

// The budget was read, documented, and given to nobody: a thought went on as long as it liked.
describe("a budget of thinking", () => {
  const thought = "The user wants a number; forty-two will do.";
  const greeting = "Hello! I am a programmed model, and every word of mine was written beforehand.";
  const ask = async (members: object): Promise<{ content: string | null; reasoning: string | undefined }> => {
    const { choices } = await client.chat.completions.create({
      model: "programmed",
      messages: user("#thought"),
      ...members,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming);
    const message = choices[0]?.message as { content: string | null; reasoning_content?: string };
    return { content: message.content, reasoning: message.reasoning_content };
  };

  test("closes the thought, and the answer follows", async () => {
    expect(await ask({})).toEqual({ content: "My answer is forty-two.", reasoning: thought });
    expect(await ask({ thinking_token_budget: 3 })).toEqual({ content: greeting, reasoning: "The user wants a num" });
    expect(await ask({ thinking_budget_tokens: 2 })).toEqual({ content: greeting, reasoning: "The user wants" });
    expect(await ask({ thinking_token_budget: 0 })).toMatchObject({ content: greeting });
    expect((await ask({ thinking_token_budget: 100 })).reasoning).toBe(thought);
    expect((await ask({ thinking_budget_tokens: -1 })).reasoning).toBe(thought);
  });

  test("also where logprobs are wanted, and where tokens are drawn", async () => {
    const drawn = { temperature: 1, thinking_token_budget: 3 };
    expect((await ask({ ...drawn, logprobs: true })).reasoning).toBe("The user wants a num");
    expect((await ask({ ...drawn, dry_multiplier: 0.1 })).reasoning).toBe("The user wants a num");
  });

  test("Messages' budget_tokens is the same", async () => {
    const response = await fetch(`${server.baseURL}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "programmed",
        max_tokens: 2000,
        messages: user(`#thought`),
        thinking: { type: "enabled", budget_tokens: 2 },
      }),
    });
    const { content } = (await response.json()) as { content: { type: string; thinking?: string }[] };
    expect(content[0]).toMatchObject({ type: "thinking", thinking: "The user wants" });
  });
});

test("an upstream that tells is passed on to who asked; a program refuses by name", async () => {
  const upstream = await startScripted((response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "m",
        prompt_token_ids: [1, 2],
        choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop", token_ids: [3] }],
      }),
    );
  });
  const gateway = await createServer({
    port: 0,
    logLevel: "silent",
    models: [
      { kind: "upstream", url: upstream.url },
      { kind: "program", name: "own", program: () => "Hi" },
    ],
  });
  try {
    const post = async (members: object): Promise<string> => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "m", messages: user("Hi"), ...members }),
      });
      return response.text();
    };
    expect(JSON.parse(await post({ return_token_ids: true }))).toMatchObject({
      prompt_token_ids: [1, 2],
      choices: [{ token_ids: [3] }],
    });
    expect(upstream.requests[0]?.body).toMatchObject({ return_token_ids: true });
    expect(await post({})).not.toContain("token_ids");
    for (const member of ["return_token_ids", "prompt_logprobs"])
      expect(JSON.parse(await post({ model: "own", [member]: member === "prompt_logprobs" ? 1 : true }))).toMatchObject(
        {
          error: { param: member, code: "unsupported_parameter" },
        },
      );
  } finally {
    await gateway.close(0);
    await upstream.close();
  }
});
