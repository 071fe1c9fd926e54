import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { listen } from "../support/listen.ts";
import { serveFixture, type FixtureServer } from "../support/fixture-server.ts";

// Nobody could know the ids that logit_bias takes: there was no way to ask for them.

let server: FixtureServer;
beforeAll(async () => {
  server = await serveFixture("--slots", "2");
});
afterAll(() => server.close());

const post = async (path: string, body: unknown, base = server.url): Promise<{ status: number; body: Told }> => {
  const response = await fetch(base + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Told };
};

interface Told {
  readonly tokens: number[];
  readonly content?: string;
  readonly prompt?: string;
  readonly count?: number;
  readonly token_strs?: string[] | null;
  readonly error?: { readonly message: string; readonly param: string | null };
}

describe("a local model", () => {
  test("llama.cpp's form: ids, or ids with their pieces", async () => {
    const { status, body } = await post("/tokenize", { content: "Hi ü" });
    expect(status).toBe(200);
    expect(body).toEqual({ tokens: expect.arrayContaining([expect.any(Number)]) as unknown });
    const pieces = await post("/tokenize", { content: "Hi ü", with_pieces: true });
    expect(pieces.body.tokens).toEqual([
      { id: body.tokens[0], piece: "H" },
      { id: body.tokens[1], piece: "i" },
      { id: body.tokens[2], piece: " " },
      { id: body.tokens[3], piece: [0xc3] },
      { id: body.tokens[4], piece: [0xbc] },
    ]);
  });

  test("vLLM's form: a prompt, counted, with the length of the context", async () => {
    const { body } = await post("/v1/tokenize", { model: "programmed", prompt: "Hi", return_token_strs: true });
    expect(body).toEqual({
      count: 2,
      max_model_len: 4096,
      tokens: expect.any(Array) as unknown,
      token_strs: ["H", "i"],
    });
    const plain = await post("/tokenize", { prompt: "Hi" });
    expect(plain.body).toMatchObject({ tokens: body.tokens, token_strs: null });
  });

  // Tokens are told and asked for in parts of 4,096: "ü" stands across the end of the first one.
  test("a long text comes whole, and back", async () => {
    const text = `${"a".repeat(4095)}ü${"b".repeat(6000)}`;
    const ids = await post("/tokenize", { content: text });
    expect(ids.body.tokens).toHaveLength(4095 + 2 + 6000);
    const { body } = await post("/tokenize", { content: text, with_pieces: true });
    const pieces = body.tokens as unknown as readonly { readonly id: number; readonly piece: unknown }[];
    expect(pieces.map(({ id }) => id)).toEqual(ids.body.tokens);
    expect(pieces.slice(4094, 4098).map(({ piece }) => piece)).toEqual(["a", [0xc3], [0xbc], "b"]);
    expect((await post("/detokenize", { tokens: ids.body.tokens })).body.content).toBe(text);
  });

  test("a conversation has the tokens that its answer says it has", async () => {
    const messages = [{ role: "user", content: "Hello <|im_end|>!" }];
    const { body } = await post("/tokenize", { messages });
    const completion = (await (
      await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "programmed", messages }),
      })
    ).json()) as { usage: { prompt_tokens: number } };
    expect(body.count).toBe(completion.usage.prompt_tokens);
    const text = await post("/detokenize", { tokens: body.tokens });
    expect(text.body.prompt).toContain("<|im_start|>user\nHello <|im_end|>!<|im_end|>");
  });

  test("special tokens are read where they are meant", async () => {
    const parsed = await post("/tokenize", { content: "<|im_end|>" });
    const plain = await post("/tokenize", { content: "<|im_end|>", parse_special: false });
    expect(parsed.body.tokens).toHaveLength(1);
    expect(plain.body.tokens).toHaveLength(10);
    for (const { body } of [parsed, plain])
      expect((await post("/detokenize", { tokens: body.tokens })).body.content).toBe("<|im_end|>");
  });

  test("what was made tokens of comes back", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 60 }), fc.boolean(), async (text, special) => {
        const { body } = await post("/tokenize", { content: text, parse_special: special });
        expect((await post("/detokenize", { tokens: body.tokens })).body).toEqual({ content: text, prompt: text });
      }),
      { numRuns: 40 },
    );
  });

  // Beyond 256 Ki characters the model's process gets it in pieces.
  test("a long text comes whole, and one that is left on its way holds nothing up", async () => {
    const text = Array.from({ length: 25_000 }, (_, at) => `${at} ü日😀"\\\n`).join("");
    expect(text.length).toBeGreaterThan(300_000);
    const left = [1, 20, 60].map(async (ms) => {
      const body = JSON.stringify({ content: text });
      const signal = AbortSignal.timeout(ms);
      await fetch(`${server.url}/tokenize`, { method: "POST", body, signal }).catch(() => {});
    });
    const { status, body } = await post("/tokenize", { content: text });
    expect(status).toBe(200);
    expect(Buffer.byteLength(text)).toBe(body.tokens.length);
    await Promise.all(left);
    expect((await post("/tokenize", { content: "Hi" })).body.tokens).toHaveLength(2);
    const some = body.tokens.slice(0, 100_000);
    const { content = "" } = (await post("/detokenize", { tokens: some })).body;
    expect(text.startsWith(content.slice(0, -4))).toBe(true);
    expect(content.length).toBeGreaterThan(50_000);
  });

  test.each([
    ["/tokenize", {}, 400, "content"],
    ["/tokenize", { content: 5 }, 400, "content"],
    ["/tokenize", { content: "a", prompt: "b" }, 400, "prompt"],
    ["/tokenize", { content: "a", with_pieces: "yes" }, 400, "with_pieces"],
    ["/tokenize", { messages: [], chat_template: "{{ x }}" }, 400, "chat_template"],
    ["/tokenize", { content: "a", model: "no-such" }, 404, null],
    ["/detokenize", {}, 400, "tokens"],
    ["/detokenize", { tokens: ["a"] }, 400, "tokens[0]"],
    ["/detokenize", { tokens: [1_000_000] }, 400, "tokens"],
  ] as const)("%s %j is refused", async (path, request, status, param) => {
    const { status: got, body } = await post(path, request);
    expect({ got, param: body.error?.param }).toEqual({ got: status, param });
  });

  test("a text of more than a million characters is refused", async () => {
    expect((await post("/tokenize", { content: "a".repeat(1_000_001) })).body.error?.param).toBe("content");
  });
});

describe("slots", () => {
  test("tell what they do, and nothing of what is said", async () => {
    const idle = (await (await fetch(`${server.url}/slots`)).json()) as Slot[];
    expect(idle.map(({ id, is_processing, n_ctx, model }) => ({ id, is_processing, n_ctx, model }))).toEqual(
      [0, 1].map((id) => ({ id, is_processing: false, n_ctx: 4096, model: "programmed" })),
    );
    const leave = new AbortController();
    const running = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      signal: leave.signal,
      body: JSON.stringify({
        model: "programmed",
        stream: true,
        max_tokens: 4000,
        messages: [{ role: "user", content: "A secret word. #endless" }],
      }),
    });
    await running.body?.getReader().read();
    const text = await (await fetch(`${server.url}/slots?model=programmed`)).text();
    leave.abort();
    expect(text).not.toMatch(/secret|tick|tock/);
    // Which of the two it is depends on what they remember.
    const [busy, ...more] = (JSON.parse(text) as Slot[]).filter(({ is_processing }) => is_processing);
    expect(busy).toMatchObject({ n_prompt_tokens: expect.any(Number) as number });
    expect(busy?.next_token[0]).toMatchObject({ has_next_token: true });
    expect(more).toEqual([]);
  });
});

interface Slot {
  readonly id: number;
  readonly model: string;
  readonly n_ctx: number;
  readonly is_processing: boolean;
  readonly next_token: readonly unknown[];
}

describe("others", () => {
  test("an upstream that has the paths is asked, in whichever form the client asked", async () => {
    const asked: { path: string | undefined; body: Record<string, unknown> }[] = [];
    const upstream = await listen((request, response) => {
      let text = "";
      request.on("data", (piece: Buffer) => (text += piece.toString()));
      request.on("end", () => {
        asked.push({ path: request.url, body: JSON.parse(text) as Record<string, unknown> });
        const isText = request.url === "/detokenize";
        response.end(JSON.stringify(isText ? { content: "Hi" } : { tokens: [{ id: 7, piece: "Hi" }] }));
      });
    });
    const gateway = await createServer({
      port: 0,
      logLevel: "silent",
      models: [{ kind: "upstream", url: `${upstream.url}/v1`, models: { mine: "theirs" } }],
    });
    try {
      expect((await post("/tokenize", { prompt: "Hi", return_token_strs: true }, gateway.url)).body).toEqual({
        count: 1,
        max_model_len: null,
        tokens: [7],
        token_strs: ["Hi"],
      });
      expect((await post("/tokenize", { content: "Hi" }, gateway.url)).body).toEqual({ tokens: [7] });
      expect((await post("/detokenize", { tokens: [7] }, gateway.url)).body).toEqual({ content: "Hi", prompt: "Hi" });
      expect(asked.map(({ path }) => path)).toEqual(["/tokenize", "/tokenize", "/detokenize"]);
      expect(asked[0]?.body).toMatchObject({ model: "theirs", prompt: "Hi", content: "Hi", add_special_tokens: true });
      expect(asked[1]?.body).toMatchObject({ add_special: false, add_special_tokens: false });
      expect((await fetch(`${gateway.url}/slots`)).status).toBe(501);
    } finally {
      await gateway.close(0);
      await upstream.close();
    }
  });

  test("an upstream without the paths, and a program, get a 501 that says so", async () => {
    const upstream = await listen((_, response) => response.writeHead(404).end("no"));
    const gateway = await createServer({
      port: 0,
      logLevel: "silent",
      models: [
        { kind: "upstream", url: `${upstream.url}/v1`, models: { mine: "theirs" } },
        { kind: "program", name: "own", program: () => "Hi" },
      ],
    });
    try {
      for (const model of ["mine", "own"]) {
        const { status, body } = await post("/tokenize", { model, content: "Hi" }, gateway.url);
        expect(status).toBe(501);
        expect(body.error?.message).toContain("/tokenize");
      }
      const { status, body } = await post("/tokenize", { content: "Hi" }, gateway.url);
      expect({ status, param: body.error?.param }).toEqual({ status: 400, param: "model" });
    } finally {
      await gateway.close(0);
      await upstream.close();
    }
  });
});
