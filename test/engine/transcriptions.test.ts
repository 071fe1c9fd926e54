import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tone, writeRandomHearing, writeRandomVision } from "../fixtures/random-vision.ts";
import { inspected, listed } from "../inspect/support.ts";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";
import { mtmdFolder, mtmdSource } from "./mtmd-oracle.ts";

const libraries = mtmdFolder === undefined ? [] : ["--llama-libraries", mtmdFolder];
const recording = tone(440);
let folder: string;
let server: RunningTruewire;
let client: OpenAI;
let url: string;

const file = (): Promise<File> => toFile(recording, "tone.wav");

/** Sends a form with these lines, each part as some client writes it. */
function sendParts(parts: readonly (string | Buffer)[], path = "transcriptions"): Promise<Response> {
  return fetch(`${url}/audio/${path}`, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=X" },
    body: Buffer.concat(parts.map((part) => Buffer.from(part))),
  });
}

const filePart = [
  '--X\r\nContent-Disposition: form-data; name="file"; filename="tone.wav"\r\nContent-Type: audio/wav\r\n\r\n',
  recording,
  "\r\n",
];

/** A part with a text. */
function field(name: string, value: string): string {
  return `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}

async function errorOf(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as { readonly error: unknown };
  return { status: response.status, ...(error as object) };
}

describe.skipIf(mtmdSource === null)("transcriptions of a local model", () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-transcriptions-"));
    const { model } = writeRandomHearing(folder);
    const eyes = mkdtempSync(join(folder, "eyes-"));
    server = await startTruewire([
      `m=${model}`,
      `eyes=${writeRandomVision(eyes, "llava").model}`,
      "--threads",
      "1",
      "--context-size",
      "2048",
      "--inspect",
      ...libraries,
    ]);
    url = `${server.url}/v1`;
    client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("as JSON, as text and as a stream, by OpenAI's SDK: the answer to the same message of a chat", async () => {
    const content = [
      { type: "text" as const, text: "Transcribe audio to text (language: en)\nTones." },
      { type: "input_audio" as const, input_audio: { data: recording.toString("base64"), format: "wav" as const } },
    ];
    const chat = await client.chat.completions.create({
      model: "m",
      temperature: 0,
      messages: [{ role: "user", content }],
    });
    const params = { file: await file(), model: "m", language: "en", prompt: "Tones." } as const;
    const text = chat.choices[0]?.message.content ?? "";
    expect(text.length).toBeGreaterThan(10);
    const usage = {
      type: "tokens",
      input_tokens: chat.usage?.prompt_tokens,
      output_tokens: chat.usage?.completion_tokens,
      total_tokens: chat.usage?.total_tokens,
    };
    expect(await client.audio.transcriptions.create(params)).toEqual({ text, usage });
    expect(await client.audio.transcriptions.create({ ...params, response_format: "text" })).toBe(`${text}\n`);
    const events = [];
    for await (const event of await client.audio.transcriptions.create({ ...params, stream: true })) events.push(event);
    expect(events.at(-1)).toEqual({ type: "transcript.text.done", text, usage });
    const deltas = events.slice(0, -1).map((event) => (event.type === "transcript.text.delta" ? event.delta : ""));
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.join("")).toBe(text);
  });

  test("with log probabilities, the same in a stream and without one", async () => {
    const params = { file: await file(), model: "m", include: ["logprobs" as const] };
    const { text, logprobs = [] } = await client.audio.transcriptions.create(params);
    expect(logprobs.length).toBeGreaterThan(10);
    expect(logprobs[0]).toEqual({ token: expect.any(String), logprob: expect.any(Number), bytes: expect.any(Array) });
    // The values differ in their last digits: rounding depends on the batch.
    const namesOf = (list: readonly { readonly token?: string }[]): unknown[] => list.map(({ token }) => token);
    const seen: unknown[] = [];
    for await (const event of await client.audio.transcriptions.create({ ...params, stream: true })) {
      if (event.type === "transcript.text.delta") seen.push(...namesOf(event.logprobs ?? []));
      if (event.type !== "transcript.text.done") continue;
      expect(event.text).toBe(text);
      expect(namesOf(event.logprobs ?? [])).toEqual(namesOf(logprobs));
    }
    expect(namesOf(logprobs).slice(0, seen.length)).toEqual(seen);
    expect(seen.length).toBeGreaterThan(1);
  });

  test("translations have the text alone", async () => {
    const { text, ...rest } = await client.audio.translations.create({ file: await file(), model: "m" });
    expect(text.length).toBeGreaterThan(10);
    expect(rest).toEqual({});
  });

  // Node's own Response.formData() refuses names without quotes, as .NET's HttpClient writes them, and `filename*`.
  test("forms as .NET writes them, and with a file's name in UTF-8", async () => {
    const dotnet = await sendParts([
      "--X\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n",
      "--X\r\nContent-Disposition: form-data; name=file; filename=tone.wav; filename*=utf-8''t%C3%B6ne.wav\r\n\r\n",
      ...filePart.slice(1),
      "--X--\r\n",
    ]);
    expect(dotnet.status).toBe(200);
    expect(await dotnet.json()).toMatchObject({ usage: { type: "tokens" } });
  });

  test.each([
    ["srt", "response_format", "response_format 'srt' is not compatible with model 'm'. Use 'json' or 'text' instead."],
    ["verbose_json", "response_format", /^400 response_format 'verbose_json' is not compatible with model 'm'\./],
  ] as const)("response_format %s needs timestamps and is refused", async (format, param, message) => {
    const created = client.audio.transcriptions.create({ file: await file(), model: "m", response_format: format });
    await expect(created).rejects.toMatchObject({
      status: 400,
      param,
      code: "unsupported_value",
      message: typeof message === "string" ? `400 ${message}` : expect.stringMatching(message),
    });
  });

  test("what is missing or cannot be read is refused by its name", async () => {
    const sent = async (...parts: (string | Buffer)[]): Promise<unknown> =>
      errorOf(await sendParts([...parts, "--X--\r\n"]));
    expect(await sent(field("model", "m"))).toEqual({
      status: 400,
      message: "Missing required parameter: 'file'.",
      type: "invalid_request_error",
      param: "file",
      code: "missing_required_parameter",
    });
    expect(await sent(...filePart)).toMatchObject({ status: 400, message: "you must provide a model parameter" });
    expect(await sent(field("model", "m"), field("file", "OggS and more bytes"))).toMatchObject({
      status: 400,
      param: "file",
      message: "Invalid file format. Supported formats: ['wav', 'mp3', 'flac']",
    });
    expect(await sent(field("model", "m"), field("file", "fLaC but nothing else"))).toMatchObject({
      status: 400,
      param: "file",
      message: expect.stringMatching(/^The image or recording cannot be read: /),
    });
    expect(await sent(field("model", "m"), ...filePart, field("temperature", "warm"))).toMatchObject({
      status: 400,
      param: "temperature",
      code: "invalid_type",
    });
    expect(await sent(field("model", "m"), ...filePart, field("timestamp_granularities[]", "word"))).toMatchObject({
      status: 400,
      param: "timestamp_granularities",
      code: "unsupported_parameter",
    });
  });

  test("a model that takes no audio says which ones do", async () => {
    await expect(client.audio.transcriptions.create({ file: await file(), model: "eyes" })).rejects.toMatchObject({
      status: 404,
      param: "model",
      message: "404 The model 'eyes' takes no audio. Models that do: 'm'.",
    });
    const { data } = await client.models.list();
    expect(data.map(({ id, ...model }) => [id, "architecture" in model && model.architecture])).toEqual([
      ["m", { input_modalities: ["text", "audio"] }],
      ["eyes", { input_modalities: ["text", "image"] }],
    ]);
  });

  test("a body that is no form, or a damaged or too large one, is refused", async () => {
    const json = await fetch(`${url}/audio/transcriptions`, { method: "POST", body: '{"model":"m"}' });
    expect(await errorOf(json)).toMatchObject({
      status: 415,
      message: expect.stringContaining("only accepts 'multipart/form-data' requests"),
    });
    const noBoundary = await fetch(`${url}/audio/transcriptions`, {
      method: "POST",
      headers: { "content-type": "multipart/form-data" },
      body: "x",
    });
    expect(await errorOf(noBoundary)).toMatchObject({ status: 400, message: expect.stringContaining("no boundary") });
    for (const parts of [
      ["nothing"],
      [field("model", "m")],
      ["--X\r\nContent-Disposition: form-data\r\n\r\nm\r\n--X--\r\n"],
      [`--X\r\nContent-Disposition: form-data; name="${"n".repeat(10_000)}"\r\n\r\nm\r\n--X--\r\n`],
      ["--X\r\n\xff\r\n\r\n\r\n--X--\r\n"],
      [field("model", "m").repeat(3000), "--X--\r\n"],
      [field("__proto__", "m"), field("prompt", "p".repeat(2 ** 20 + 1)), "--X--\r\n"],
    ])
      expect(await errorOf(await sendParts(parts))).toMatchObject({
        status: 400,
        message: expect.stringMatching(/^The request body is not a valid form \(multipart\/form-data\): .*\.$/),
      });
    const bytes = Buffer.alloc(25 * 2 ** 20 + 1000);
    expect(await errorOf(await sendParts([bytes]))).toEqual({
      status: 413,
      message: `Maximum content size limit (26214400) exceeded (${bytes.length} bytes read)`,
      type: "server_error",
      param: null,
      code: null,
    });
  });

  test("requests are counted and inspected, without the file's bytes in the body", async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(
      /gen_ai_operation_name="transcription",[^}]*gen_ai_request_model="m",[^}]*api="transcriptions"/,
    );
    const { requests } = await listed(server.url);
    const one = requests.find(({ path, status }) => path === "/v1/audio/translations" && status === 200);
    const shown = JSON.stringify(await inspected(server.url, one ?? { id: "" }));
    expect(shown).toContain("characters of base64");
    expect(shown).toContain("Translate audio to English text");
  });
});
