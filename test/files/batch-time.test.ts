import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/config.ts";
import type { Program } from "../../src/wire/apis/chat/program.ts";
import { keyOf } from "../keys/support.ts";
import { listenInTest } from "../support/close-after-test.ts";

// What happens to a batch while its server is away: its time passes, its key is removed, another process takes it over.

const servers: TruewireServer[] = [];
let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-batch-time-"));
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
});
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
  rmSync(folder, { recursive: true, force: true });
});

/** Answers "quick" at once, and everything else when its request is abandoned. */
const partly: Program = async ({ messages, signal }) => {
  if (messages.at(-1)?.content === "quick") return "done";
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return "too late";
};

async function opened(program: Program, config: Partial<TruewireConfig> = {}): Promise<TruewireServer> {
  const models = [{ kind: "program" as const, name: "m", program }];
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    models,
    store: join(folder, "store"),
    batchConcurrency: 1,
    ...config,
  });
  servers.push(server);
  return server;
}

/** All that the store contains. */
function stored(): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

async function stop(server: TruewireServer): Promise<void> {
  servers.splice(servers.indexOf(server), 1);
  await server.close(0);
}

const clientOf = ({ url }: TruewireServer, apiKey = "none"): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

async function created(client: OpenAI, texts: readonly string[]): Promise<string> {
  const lines = texts.map((content, at) => ({
    custom_id: `line-${at}`,
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: "m", messages: [{ role: "user", content }] },
  }));
  return createdOf(client, lines, "/v1/chat/completions");
}

async function createdOf(client: OpenAI, lines: readonly object[], endpoint: OpenAI.BatchCreateParams["endpoint"]) {
  const text = lines.map((line) => JSON.stringify(line)).join("\n");
  const file = await client.files.create({ file: await toFile(Buffer.from(text), "in.jsonl"), purpose: "batch" });
  const batch = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" });
  return batch.id;
}

async function reached(client: OpenAI, id: string, status: OpenAI.Batch["status"]): Promise<OpenAI.Batch> {
  await expect.poll(async () => (await client.batches.retrieve(id)).status).toBe(status);
  return client.batches.retrieve(id);
}

async function resultsOf(client: OpenAI, fileId: string | undefined): Promise<Record<string, unknown>[]> {
  const text = await (await client.files.content(fileId ?? "")).text();
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]));
}

test("a batch whose 24 hours are over expires: what was done is kept, and each other line has an error", async () => {
  const before = await opened(partly);
  const id = await created(clientOf(before), ["quick", "slow", "slow"]);
  const half = async () => (await clientOf(before).batches.retrieve(id)).request_counts?.completed;
  await expect.poll(half).toBe(1);
  await stop(before);
  vi.setSystemTime(Date.now() + 25 * 3_600_000);
  const client = clientOf(await opened(partly));
  const batch = await reached(client, id, "expired");
  expect(batch.request_counts).toEqual({ total: 3, completed: 1, failed: 2 });
  expect(batch.expired_at).toBeGreaterThanOrEqual(batch.expires_at ?? Infinity);
  expect(await resultsOf(client, batch.output_file_id)).toMatchObject([{ custom_id: "line-0" }]);
  expect(await resultsOf(client, batch.error_file_id)).toMatchObject([
    { custom_id: "line-1", response: null, error: { code: "batch_expired" } },
    { custom_id: "line-2", response: null, error: { code: "batch_expired" } },
  ]);
});

test("a batch whose key was removed fails when its server starts again, and asks the model nothing", async () => {
  const [ann, ben] = [keyOf("ann"), keyOf("ben")];
  const before = await opened(partly, { keys: [ann.entry, ben.entry] });
  const id = await created(clientOf(before, ann.key), ["slow"]);
  await reached(clientOf(before, ann.key), id, "in_progress");
  await stop(before);
  let asked = 0;
  const counting: Program = () => {
    asked++;
    return "done";
  };
  const without = await opened(counting, { keys: [ben.entry] });
  await expect.poll(() => stored().includes("key_removed")).toBe(true);
  await stop(without);
  // The key is back: what became of its batch can be read.
  const after = await opened(counting, { keys: [ann.entry, ben.entry] });
  const batch = await reached(clientOf(after, ann.key), id, "failed");
  expect(batch.errors?.data?.[0]).toMatchObject({ code: "key_removed" });
  expect(asked).toBe(0);
});

test("a batch of a process that has been silent for a minute is taken over, and no line runs twice", async () => {
  const asked: string[] = [];
  const noting: Program = ({ messages }) => {
    asked.push(String(messages.at(-1)?.content));
    return "done";
  };
  const first = await opened(partly);
  const id = await created(clientOf(first), ["quick", "slow"]);
  await expect.poll(async () => (await clientOf(first).batches.retrieve(id)).request_counts?.completed).toBe(1);
  // The folder as another machine has it two minutes later: the batch was not given back.
  const copy = join(folder, "copy");
  cpSync(join(folder, "store"), copy, { recursive: true });
  vi.setSystemTime(Date.now() + 120_000);
  const client = clientOf(await opened(noting, { store: copy }));
  expect(await reached(client, id, "completed")).toMatchObject({
    request_counts: { total: 2, completed: 2, failed: 0 },
  });
  expect(asked).toEqual(["slow"]);
});

test("embeddings run in a batch", async () => {
  const upstream = await listenInTest((request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url?.endsWith("/models") === true)
      return void response.end('{"object":"list","data":[{"id":"e","object":"model","created":1,"owned_by":"x"}]}');
    const data = [{ object: "embedding", index: 0, embedding: [0.5, -0.5] }];
    const usage = { prompt_tokens: 2, total_tokens: 2 };
    request.resume().on("end", () => response.end(JSON.stringify({ object: "list", data, model: "e", usage })));
  });
  const models = [{ kind: "upstream" as const, url: `${upstream.url}/v1`, models: ["e"] }];
  const client = clientOf(await opened(partly, { models }));
  const line = { custom_id: "a", method: "POST", url: "/v1/embeddings", body: { model: "e", input: "Hello" } };
  const id = await createdOf(client, [line], "/v1/embeddings");
  const batch = await reached(client, id, "completed");
  expect(await resultsOf(client, batch.output_file_id)).toMatchObject([
    { custom_id: "a", response: { status_code: 200, body: { data: [{ embedding: [0.5, -0.5] }] } } },
  ]);
});
