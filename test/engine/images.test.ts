import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { ContentPart, Message } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import type { EncoderProcess as EncoderProcessType } from "../../src/engines/llama/vision/encoder-process.ts";
import type { LlamaEngineOptions } from "../../src/engines/llama/options.ts";
import {
  randomPicture,
  tone,
  visionFamilies,
  visionTemplate,
  writeRandomHearing,
  writeRandomVision,
  type VisionFamily,
} from "../fixtures/random-vision.ts";
import { inflatingPng, manyScans } from "../support/hostile-files.ts";
import { dailyPart } from "../support/runs.ts";
import { writeRandomKind } from "../fixtures/random-kinds.ts";
import { drive, openBuilt, request, until, type TestEngine } from "./local-engine.ts";
import { MtmdOracle, mtmdFolder, mtmdSource } from "./mtmd-oracle.ts";
import { listen } from "../support/listen.ts";

const small = randomPicture(96, 64, 1);
const wide = randomPicture(300, 200, 2);

function part(picture: Buffer): ContentPart {
  return { type: "image", url: `data:image/png;base64,${picture.toString("base64")}` };
}

/** A FLAC file of a kilobyte that claims this number of samples (RFC 9639, section 8.2). */
function claimingFlac(samples: number): Buffer {
  const info = Buffer.alloc(34);
  info.writeUInt16BE(4096, 0);
  info.writeUInt16BE(4096, 2);
  // 16,000 Hz, one channel, 16 bits.
  info.writeBigUInt64BE((16_000n << 44n) | (15n << 36n) | BigInt(samples), 10);
  return Buffer.concat([Buffer.from("fLaC"), Buffer.from([0x80, 0, 0, 34]), info, Buffer.alloc(1000)]);
}

function words(text: string): ContentPart {
  return { type: "text", text };
}

function chat(...messages: readonly (readonly ContentPart[])[]): GenerationRequest["prompt"] {
  const turns = messages.flatMap((content, at): Message[] => [
    { role: "user", content },
    ...(at < messages.length - 1 ? [{ role: "assistant", content: "ok" } as const] : []),
  ]);
  return { kind: "chat", messages: turns, template: {} };
}

let folder: string;
let opened: Engine[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-images-"));
});
afterEach(async () => {
  await Promise.all(opened.map((engine) => engine.close(0)));
  opened = [];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { EncoderProcess } = (await import(
  pathToFileURL(resolve(process.env.TRUEWIRE_DIST ?? "dist", "engines/llama/vision/encoder-process.js")).href
)) as { readonly EncoderProcess: typeof EncoderProcessType };

function openEncoder(rowLength: number): Promise<EncoderProcessType> {
  const { model, mmproj } = writeRandomVision(folder, "llava");
  if (!mtmdSource) throw new Error("There is no libmtmd.");
  const files = { source: mtmdSource, model, mmproj };
  return EncoderProcess.open({ type: "open", ...files, rowLength, threads: 1, gpu: false }, () => {});
}

async function open(
  family: VisionFamily,
  options: Partial<LlamaEngineOptions> = {},
): Promise<Omit<TestEngine, "model" | "close"> & { readonly files: ReturnType<typeof writeRandomVision> }> {
  const files = writeRandomVision(folder, family);
  const engine = await openBuilt({
    model: files.model,
    mmproj: files.mmproj,
    speculation: "off",
    ...(mtmdFolder !== undefined && { llamaLibraries: mtmdFolder }),
    ...options,
  });
  opened.push(engine);
  return { ...drive(engine), files };
}

let known: MtmdOracle | undefined;
function oracle(): MtmdOracle {
  return (known ??= new MtmdOracle());
}

/** The ids of the generated tokens, with the logprob of the most likely one at each place if the request asks for it, and the usage. */
async function answer(
  engine: Pick<TestEngine, "batches">,
  over: Partial<GenerationRequest>,
): Promise<{
  readonly tokens: readonly number[];
  readonly likeliest: readonly number[];
  readonly prompt: number;
  readonly cached: number;
}> {
  const tokens: number[] = [];
  const likeliest: number[] = [];
  let usage = { prompt: 0, cached: 0 };
  for await (const events of engine.batches({
    limits: { maxTokens: 8, ignoreEos: true },
    wantsTokenIds: true,
    ...over,
  }))
    for (const event of events) {
      if (event.type === "tokens") tokens.push(...event.tokens);
      if (event.type === "text-delta")
        likeliest.push(...(event.logprobs ?? []).map(({ top }) => top[0]?.logprob ?? NaN));
      if (event.type === "usage")
        usage = {
          prompt: event.usage.promptTokens ?? 0,
          cached: Number(event.usage.promptDetails?.["cached_tokens"] ?? 0),
        };
      if (event.type === "end") expect(event.end).toEqual({ kind: "done" });
    }
  return { tokens, likeliest, ...usage };
}

describe.skipIf(mtmdSource === null)("images", () => {
  const conversations: readonly (readonly [string, GenerationRequest["prompt"], string, readonly Buffer[]])[] = [
    [
      "a text and an image",
      chat([words("What is this?"), part(wide)]),
      "<|im_start|>user\nWhat is this?<__media__><|im_end|>\n<|im_start|>assistant\n",
      [wide],
    ],
    [
      "three images in two messages, between texts",
      chat([part(small), words("and"), part(wide), words("which differ?")], [words("Sure?"), part(small)]),
      "<|im_start|>user\n<__media__>and<__media__>which differ?<|im_end|>\n<|im_start|>assistant\nok<|im_end|>\n" +
        "<|im_start|>user\nSure?<__media__><|im_end|>\n<|im_start|>assistant\n",
      [small, wide, small],
    ],
  ];

  describe.each(dailyPart(visionFamilies, 2, 1))("%s", (family) => {
    test.each(conversations)(
      "%s: the prompt has the tokens, and the answer is that of llama.cpp",
      async (_, prompt, text, images) => {
        const engine = await open(family);
        const expected = oracle().answer(engine.files, text, images, 8);
        const { tokens, prompt: promptTokens } = await answer(engine, { prompt });
        expect(promptTokens).toBe(expected.promptTokens);
        expect(tokens).toEqual(expected.tokens);
        const counted = await engine.engine.ask?.(
          { kind: "count-tokens", request: request({ prompt }) },
          new AbortController().signal,
        );
        expect(counted).toBe(expected.promptTokens);
      },
    );

    test("an image in small batches, next to another answer, changes nothing", async () => {
      const prompt = chat([words("What is this?"), part(wide), part(small)]);
      const { tokens } = await answer(await open(family), { prompt });
      // Rows that attend to later ones stay in one batch.
      const engine = await open(family, { batchSize: family === "gemma3" ? 16 : 7, slots: 2 });
      const other = answer(engine, { prompt: chat([words("Tell me a long story.")]), limits: { maxTokens: 60 } });
      expect((await answer(engine, { prompt })).tokens).toEqual(tokens);
      await other;
    });

    test("conversations that begin with the same image share it, in slots and in the prompt cache", async () => {
      const prompts = ["one", "two", "three", "four"].map((end) => ({
        prompt: chat([words("What is this?"), part(wide), words(end)]),
      }));
      const alone = await open(family);
      const expected = [];
      for (const { prompt } of prompts)
        expected.push(
          (await answer(alone, { prompt, limits: { maxTokens: 8, ignoreEos: true, cachePrompt: false } })).tokens,
        );
      for (const slots of [4, 1]) {
        const engine = await open(family, { slots });
        const found: (readonly number[])[] = [];
        let cached = 0;
        for (const prompt of [...prompts, ...prompts]) {
          const { tokens, cached: count } = await answer(engine, prompt);
          found.push(tokens);
          cached = count;
        }
        expect(found).toEqual([...expected, ...expected]);
        expect(cached).toBeGreaterThan(30);
      }
    });

    test("a conversation continues from the cache, and another image of the same size does not", async () => {
      const engine = await open(family);
      const first = [words("What is this?"), part(wide)];
      const { prompt } = await answer(engine, { prompt: chat(first) });
      const next = await answer(engine, { prompt: chat(first, [words("And now?")]) });
      expect(next.cached).toBeGreaterThanOrEqual(prompt - 8);
      const whole = { prompt: chat(first, [words("And now?")]), limits: { maxTokens: 8, cachePrompt: false } };
      expect(next.tokens).toEqual((await answer(await open(family), whole)).tokens);
      const other = await answer(engine, { prompt: chat([words("What is this?"), part(randomPicture(300, 200, 3))]) });
      expect(other.cached).toBeLessThan(prompt / 2);
    });
  });

  test("a recording is answered as llama.cpp does, and an image is refused by a model that only hears", async () => {
    const files = writeRandomHearing(folder);
    const engine = await openBuilt({ ...files, contextSize: 2048, ...(mtmdFolder && { llamaLibraries: mtmdFolder }) });
    opened.push(engine);
    const audio = (hertz: number): ContentPart => {
      return { type: "audio", data: tone(hertz).toString("base64"), format: "wav" };
    };
    const text = "<|im_start|>user\nWhat is it?<__media__><|im_end|>\n<|im_start|>assistant\n";
    for (const hertz of [440, 1000]) {
      const { tokens, prompt, cached } = await answer(drive(engine), {
        prompt: chat([words("What is it?"), audio(hertz)]),
      });
      const expected = oracle().answer(files, text, [tone(hertz)], 8);
      expect(prompt).toBe(expected.promptTokens);
      expect(tokens).toEqual(expected.tokens);
      expect(cached).toBeLessThan(40);
    }
    expect(engine.models()[0]?.takesImages).toBe(false);
    const refused: unknown[] = [];
    for await (const events of engine.generate(request({ prompt: chat([part(small)]) }))) refused.push(...events);
    expect(refused).toMatchObject([{ type: "end", end: { failure: { param: "messages[0].content[0].type" } } }]);
  });

  test("an image is encoded once, also if its file was written in another way, and not for a request that was cancelled", async () => {
    const encoder = await openEncoder(64);
    const wanted = (): boolean => true;
    const image = await encoder.read(wide, "image");
    // The same pixels, and another file: PNG readers skip what comes before the end.
    const end = wide.length - 12;
    const comment = Buffer.from("0000000474455874410041424b5dc7fb", "hex");
    const other = await encoder.read(Buffer.concat([wide.subarray(0, end), comment, wide.subarray(end)]), "image");
    expect(other.hash).toBe(image.hash);
    const [first, second, third] = await Promise.all([
      encoder.rows(image, wanted),
      encoder.rows(image, wanted),
      encoder.rows(other, wanted),
    ]);
    expect(second).toBe(first);
    expect(third).toBe(first);
    expect(encoder.encoded).toBe(1);
    const busy = encoder.rows(await encoder.read(small, "image"), wanted);
    const left = encoder.rows(await encoder.read(randomPicture(50, 50, 9), "image"), () => false);
    await expect(left).rejects.toThrow("it is not wanted");
    await busy;
    expect(encoder.encoded).toBe(2);
  });

  test("a projector with rows of another length is refused", async () => {
    await expect(openEncoder(32)).rejects.toThrow(
      /the projector belongs to another model: its rows have 64 numbers, and the model takes 32$/,
    );
  });

  test("the process of a lazy projector starts with the first image, and what it cannot load fails that request only", async () => {
    const lazy = { "truewire.lazy": { type: "bool", value: true } } as const;
    const own = mkdtempSync(join(folder, "lazy-"));
    const files = writeRandomVision(own, "llava", 1, lazy);
    const { execFileSync } = await import("node:child_process");
    const processes = (engine: Engine): number => {
      const model = (engine as unknown as { readonly processId: number }).processId;
      const table = execFileSync("ps", ["-A", "-o", "ppid="], { encoding: "utf8" });
      return table.split("\n").filter((line) => Number(line) === model).length;
    };
    const opening = { ...files, ...(mtmdFolder !== undefined && { llamaLibraries: mtmdFolder }) };
    const engine = await openBuilt({ ...opening, speculation: "off" });
    opened.push(engine);
    expect(engine.models()[0]?.takesImages).toBe(true);
    await answer(drive(engine), { prompt: chat([words("Hello")]) });
    expect(processes(engine)).toBe(0);
    const { tokens } = await answer(drive(engine), { prompt: chat([part(wide)]) });
    expect(tokens).toEqual((await answer(await open("llava"), { prompt: chat([part(wide)]) })).tokens);
    expect(processes(engine)).toBe(1);
    // The projector of another model, which an open that is not lazy refuses.
    const { mmproj } = writeRandomVision(mkdtempSync(join(folder, "other-")), "qwen2vl", 1, lazy);
    writeFileSync(mmproj, readFileSync(mmproj).subarray(0, -50_000));
    const lines: string[] = [];
    const log = (line: string): void => void lines.push(line);
    const broken = await openBuilt({ ...opening, mmproj, speculation: "off", log });
    opened.push(broken);
    const ends: unknown[] = [];
    for await (const events of broken.generate(request({ prompt: chat([part(small)]) })))
      for (const event of events) if (event.type === "end") ends.push(event.end);
    expect(ends).toMatchObject([
      {
        failure: {
          status: 500,
          message: "The process that encodes images could not be started. The server's log says why.",
        },
      },
    ]);
    // The client got the path of the projector, because the test looked only at the beginning of the sentence.
    expect(lines.join("\n")).toContain(`could not be started: it cannot load ${mmproj}`);
    await answer(drive(broken), { prompt: chat([words("Hello")]) });
  });

  test("an encoder that crashes costs one request, and the next one starts another", async () => {
    const lines: string[] = [];
    const engine = await open("llava", { log: (line) => void lines.push(line) });
    await answer(engine, { prompt: chat([part(small)]) });
    const { execFileSync } = await import("node:child_process");
    const model = (engine.engine as unknown as { readonly processId: number }).processId;
    const [encoder] = execFileSync("ps", ["-o", "pid=", "--ppid", String(model)], { encoding: "utf8" }).split("\n");
    process.kill(Number(encoder), "SIGKILL");
    await until(() => lines.length > 1);
    const { tokens } = await answer(engine, { prompt: chat([part(wide)]) });
    expect(tokens).toHaveLength(8);
    expect(lines.join("\n")).toContain("The process that encodes images was ended by SIGKILL; it is started again");
  });

  test("what is not an image, or too large a one, is refused with its place", async () => {
    const { engine } = await open("llava");
    const refusal = async (url: string): Promise<unknown> => {
      const prompt = chat([words("What?"), { type: "image", url }]);
      for await (const events of engine.generate(request({ prompt })))
        for (const event of events) if (event.type === "end" && event.end.kind === "rejected") return event.end.failure;
      return undefined;
    };
    const data = (file: Buffer): string => `data:image/png;base64,${file.toString("base64")}`;
    expect(await refusal("https://example.com/a.png")).toMatchObject({
      param: "messages[0].content[1]",
      message:
        "Invalid image: expected a data URL such as 'data:image/png;base64,…', but got 'https://example.com/a.png'. This server cannot download images.",
    });
    expect(await refusal(data(Buffer.from("<svg></svg>")))).toMatchObject({ image: { why: "format" } });
    expect(await refusal("data:image/png;base64,!!!!")).toMatchObject({ image: { why: "base64" } });
    expect(await refusal(data(Buffer.concat([small.subarray(0, 33), Buffer.alloc(9)])))).toMatchObject({
      status: 400,
      image: { why: "damaged" },
      param: "messages[0].content[1]",
    });
    const bomb = Buffer.from(small);
    bomb.writeUInt32BE(60_000, 16);
    bomb.writeUInt32BE(60_000, 20);
    expect(await refusal(data(bomb))).toMatchObject({
      image: { why: "side", most: 8000 },
      message: "Invalid image: it has 60000 × 60000 pixels, and at most 64 million are read.",
    });
  });

  test.each(dailyPart(visionFamilies, 2))(
    "%s with a draft model, which gets no images: the answers are those without",
    async (family) => {
      const path = join(folder, "draft.gguf");
      writeRandomKind(path, "llama", { chatTemplate: visionTemplate });
      const draft = { path, maxTokens: 4 };
      const plain = await open(family);
      const drafting = await open(family, { draft, speculation: "always" });
      const prompts = [
        chat([words("What is this?"), part(wide)]),
        chat([part(small), words("and"), part(wide), words("which differ?")], [words("Sure?"), part(small)]),
        chat([words("No image.")]),
      ];
      let different = 0;
      for (const sampling of [{ temperature: 0 }, { temperature: 0.8, seed: 3 }]) {
        const limits = { maxTokens: 40, ignoreEos: true };
        // One after another: which answers share a batch depends on time, and it changes the last bits of a random model's close logits.
        for (const prompt of prompts) {
          const asked = { prompt, sampling, limits, logprobs: { top: 1 } };
          const [without, with_] = await Promise.all([plain, drafting].map((engine) => answer(engine, asked)));
          if (!without || !with_) throw new Error("There are no answers.");
          const first = with_.tokens.findIndex((token, at) => token !== without.tokens[at]);
          expect(with_.tokens).toHaveLength(without.tokens.length);
          expect(with_.likeliest).toHaveLength(with_.tokens.length);
          // Drafts change the last bits, too: on some processors, a sampled token is another one. Before it, a wrong state of the model would show.
          if (first !== -1) different++;
          for (const [at, logprob] of with_.likeliest.slice(0, first === -1 ? undefined : first + 1).entries())
            expect(logprob).toBeCloseTo(without.likeliest[at] ?? NaN, 2);
        }
      }
      expect(different).toBeLessThan(2);
      expect(drafting.counters().draftedTokens).toBeGreaterThan(20);
    },
  );

  // A PNG of 3.6 MB took 3.4 GB of memory, a JPEG of 1.4 MB ten minutes, in which no other image was read. Our damaged images were small in
  // every way.
  test("images that cost much more than their size are refused with their place, and others are read", async () => {
    const encoder = await openEncoder(64);
    const bombs = [inflatingPng(300), manyScans(4000, 5000)];
    for (const [at, reason] of ["its data unpack to more than its size", "it has 5001 scans"].entries())
      await expect(encoder.read(bombs[at] ?? small, "messages[0].content[1]")).rejects.toMatchObject({
        failure: { status: 400, message: expect.stringContaining(reason), param: "messages[0].content[1]" },
      });
    expect((await encoder.read(small, "image")).chunks.length).toBeGreaterThan(0);
  });

  // The length that a recording claims was allocated, without a limit: there was none on the memory of the process.
  test("a recording that claims gigabytes costs its own request, and the next one is read", async () => {
    const { model, mmproj } = writeRandomHearing(folder);
    if (!mtmdSource) throw new Error("There is no libmtmd.");
    const files = { source: mtmdSource, model, mmproj };
    const encoder = await EncoderProcess.open(
      { type: "open", ...files, rowLength: 64, threads: 1, gpu: false },
      () => {},
    );
    await expect(encoder.read(claimingFlac(600_000_000), "messages[0].content[0]")).rejects.toMatchObject({
      failure: {
        status: 400,
        message: "The image or recording cannot be read: it needs too much memory, or breaks its reader.",
        param: "messages[0].content[0]",
      },
    });
    expect((await encoder.read(tone(440), "image")).chunks.length).toBeGreaterThan(0);
  });

  // All images waited in one line, also for clients that had left.
  test("owners take turns, and an image that is not wanted any more is left out", async () => {
    const encoder = await openEncoder(64);
    const order: string[] = [];
    const read = (name: string, owner: string, isWanted = true): Promise<unknown> =>
      encoder
        .read(randomPicture(40, 40, order.length + name.charCodeAt(0) * 100 + name.charCodeAt(1)), "image", {
          owner,
          isWanted: () => isWanted,
        })
        .then(
          () => order.push(name),
          () => order.push(`${name} left`),
        );
    await Promise.all([
      ...["a1", "a2", "a3", "a4"].map((name) => read(name, "a", name !== "a3")),
      ...["b1", "b2"].map((name) => read(name, "b")),
    ]);
    expect(order.indexOf("b1")).toBeLessThan(order.indexOf("a4"));
    expect(order.filter((name) => name.startsWith("b") || name === "a4")).toEqual(["b1", "b2", "a4"]);
    expect(order).toContain("a3 left");
  });

  // The process had all of the server's environment, keys included.
  test.skipIf(process.platform !== "linux")("the encoder has no keys in its environment", async () => {
    vi.stubEnv("SECRET_OF_THE_SERVER", "1");
    vi.stubEnv("GGML_OF_THE_SERVER", "1");
    const encoder = await openEncoder(64);
    vi.unstubAllEnvs();
    const environment = readFileSync(`/proc/${encoder.processId}/environ`, "latin1");
    expect(environment).toContain("GGML_OF_THE_SERVER");
    expect(environment).not.toContain("SECRET_OF_THE_SERVER");
  });

  // libmtmd tried to read it as a video.
  test.skipIf(process.platform === "win32")("a damaged image starts no program", async () => {
    const programs = mkdtempSync(join(folder, "programs-"));
    for (const name of ["ffprobe", "ffmpeg"])
      writeFileSync(join(programs, name), `#!/bin/sh\n: > ${join(programs, "started")}\n`, { mode: 0o755 });
    vi.stubEnv("PATH", `${programs}:${process.env.PATH}`);
    const encoder = await openEncoder(64);
    vi.unstubAllEnvs();
    const damaged = Buffer.concat([small.subarray(0, 33), Buffer.alloc(200)]);
    await expect(encoder.read(damaged, "messages[0].content[0]")).rejects.toMatchObject({
      failure: { image: { why: "damaged" }, param: "messages[0].content[0]" },
    });
    expect(readdirSync(programs).toSorted()).toEqual(["ffmpeg", "ffprobe"]);
  });

  test("a projector next to the model is found; one of another model is refused, or not used if it was not configured", async () => {
    const { model, mmproj } = writeRandomVision(folder, "llava");
    const own = mkdtempSync(join(folder, "own-"));
    cpSync(model, join(own, "model.gguf"));
    cpSync(mmproj, join(own, "mmproj-F16.gguf"));
    const found = await openBuilt({ model: join(own, "model.gguf") });
    opened.push(found);
    expect(found.models()[0]?.takesImages).toBe(true);
    const lines: string[] = [];
    const off = await openBuilt({
      model: join(own, "model.gguf"),
      mmproj: "off",
      log: (line) => void lines.push(line),
    });
    opened.push(off);
    expect(off.models()[0]?.takesImages).toBe(false);
    cpSync(model, join(own, "mmproj-F16.gguf"));
    const unused = await openBuilt({ model: join(own, "model.gguf"), log: (line) => void lines.push(line) });
    opened.push(unused);
    expect(unused.models()[0]?.takesImages).toBe(false);
    expect(lines.join("\n")).toContain("is not used, so the model takes text only");
    await expect(openBuilt({ model: join(own, "model.gguf"), mmproj: join(own, "mmproj-F16.gguf") })).rejects.toThrow(
      /^libmtmd of .* cannot be used: it cannot load .*mmproj-F16\.gguf/,
    );
    await expect(openBuilt({ model: join(own, "model.gguf"), mmproj: join(own, "none.gguf") })).rejects.toThrow(
      /none\.gguf does not exist/,
    );
  });
});

describe.skipIf(mtmdSource === null)("a model of a repository", () => {
  test("is downloaded with its projector, once", async () => {
    const { model, mmproj } = writeRandomVision(folder, "llava");
    const files: Record<string, Buffer> = {
      "eyes-Q8_0.gguf": readFileSync(model),
      "mmproj-F32.gguf": Buffer.alloc(64),
      "mmproj-F16.gguf": readFileSync(mmproj),
    };
    const asked: string[] = [];
    const hub = await listen((message, response) => {
      const { pathname } = new URL(message.url ?? "/", "http://hub");
      asked.push(pathname);
      const file = files[pathname.split("/").at(-1) ?? ""];
      if (pathname.includes("/manifests/")) response.end(JSON.stringify({ ggufFile: { rfilename: "eyes-Q8_0.gguf" } }));
      else if (pathname === "/api/models/somebody/eyes/tree/main")
        response.end(JSON.stringify(["README.md", ...Object.keys(files)].map((path) => ({ type: "file", path }))));
      else if (!file) response.writeHead(404).end();
      else {
        const [, from = "0", to] = /bytes=(\d+)-(\d*)/.exec(message.headers.range ?? "") ?? [];
        const body = file.subarray(Number(from), to ? Number(to) + 1 : file.length);
        response.writeHead(message.headers.range === undefined ? 200 : 206, {
          etag: `"${pathname}"`,
          "content-length": body.length,
          "accept-ranges": "bytes",
          "content-range": `bytes ${from}-${Number(from) + body.length - 1}/${file.length}`,
        });
        response.end(message.method === "HEAD" ? undefined : body);
      }
    });
    const modelsFolder = mkdtempSync(join(folder, "hub-"));
    const options = { model: "hf:somebody/eyes:Q8_0", modelsFolder, hub: `${hub.url}/` };
    const removeProjector = (): void => {
      for (const name of readdirSync(modelsFolder)) if (name.includes("mmproj")) rmSync(join(modelsFolder, name));
    };
    // The third time, the projector is missing, as with a model that was downloaded before projectors were.
    for (const [time, isDownloaded] of [true, false, true].entries()) {
      if (time === 2) removeProjector();
      asked.length = 0;
      const engine = await openBuilt(options);
      opened.push(engine);
      expect(engine.models()[0]?.takesImages).toBe(true);
      expect(asked.some((path) => path.endsWith("/mmproj-F16.gguf"))).toBe(isDownloaded);
      expect(asked.some((path) => path.endsWith("/mmproj-F32.gguf"))).toBe(false);
    }
    // A repository without a projector is asked for its files once.
    const tree = "/api/models/somebody/eyes/tree/main";
    delete files["mmproj-F16.gguf"];
    delete files["mmproj-F32.gguf"];
    removeProjector();
    for (const expected of [[tree], []]) {
      asked.length = 0;
      const engine = await openBuilt(options);
      opened.push(engine);
      expect(engine.models()[0]).toMatchObject({ takesImages: false, takesAudio: false });
      expect(asked.filter((path) => path === tree)).toEqual(expected);
    }
    await hub.close();
  });
});

test("a model without a projector says how to get it", async () => {
  const { model } = writeRandomVision(folder, "llava");
  const engine = await openBuilt({ model, mmproj: "off" });
  opened.push(engine);
  for await (const events of engine.generate(request({ prompt: chat([part(small)]) })))
    expect(events.at(-1)).toMatchObject({
      end: {
        kind: "rejected",
        failure: {
          status: 400,
          param: "messages[0].content[0].type",
          message:
            "Invalid content type: this model reads text only, and cannot take an image. It can read images if it " +
            "is served with its projector: --mmproj FILE, or mmproj in the configuration.",
        },
      },
    });
});
