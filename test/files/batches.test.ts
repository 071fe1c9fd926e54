import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/config.ts";
import type { Program } from "../../src/wire/apis/chat/program.ts";
import { keyOf } from "../keys/support.ts";

const servers: TruewireServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

const echo: Program = ({ messages }) => ({
  text: `You said: ${String(messages.at(-1)?.content)}`,
  usage: { promptTokens: 3, completionTokens: 4 },
});

async function opened(config: Partial<TruewireConfig> = {}, program: Program = echo) {
  const models = [{ kind: "program" as const, name: "echo", program }];
  const server = await createServer({ port: 0, logLevel: "silent", models, ...config });
  servers.push(server);
  const openai = (apiKey = "none"): OpenAI => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
  const anthropic = (apiKey = "none"): Anthropic => new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });
  return { server, openai, anthropic };
}

type Line = Readonly<Record<string, unknown>>;

const chatLine = (id: string, content: string, more: object = {}): Line => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model: "echo", messages: [{ role: "user", content }], ...more },
});

async function created(client: OpenAI, text: string | readonly Line[], endpoint = "/v1/chat/completions") {
  const content = typeof text === "string" ? text : text.map((line) => JSON.stringify(line)).join("\n");
  const file = await client.files.create({ file: await toFile(Buffer.from(content), "in.jsonl"), purpose: "batch" });
  return client.batches.create({
    input_file_id: file.id,
    endpoint: endpoint as "/v1/chat/completions",
    completion_window: "24h",
    metadata: { of: "a test" },
  });
}

const isOver = new Set(["completed", "failed", "expired", "cancelled"]);

async function ended(client: OpenAI, id: string): Promise<OpenAI.Batch> {
  await expect.poll(async () => isOver.has((await client.batches.retrieve(id)).status)).toBe(true);
  return client.batches.retrieve(id);
}

async function linesOf(client: OpenAI, fileId: string | undefined): Promise<Record<string, unknown>[]> {
  const text = await (await client.files.content(fileId ?? "")).text();
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]));
}

describe("OpenAI's batches", () => {
  test("answer each line as its endpoint does, with the errors in a file of their own", async () => {
    const client = (await opened()).openai();
    const batch = await created(client, [
      chatLine("a", "one"),
      chatLine("b", "two", { n: -1 }),
      chatLine("c", "three", { model: "unknown" }),
      chatLine("d", "four", { stream: true }),
      chatLine("e", "five"),
    ]);
    expect(batch).toMatchObject({ object: "batch", endpoint: "/v1/chat/completions", metadata: { of: "a test" } });
    const { output_file_id: output, error_file_id: errors, ...rest } = await ended(client, batch.id);
    expect(rest).toMatchObject({
      status: "completed",
      request_counts: { total: 5, completed: 2, failed: 3 },
      errors: null,
    });
    expect(rest.usage).toMatchObject({ input_tokens: 6, output_tokens: 8, total_tokens: 14 });
    const answers = new Map((await linesOf(client, output)).map((line) => [line["custom_id"], line]));
    expect([...answers.keys()].toSorted()).toEqual(["a", "e"]);
    expect(answers.get("a")).toMatchObject({
      id: expect.stringMatching(/^batch_req_\w{24}$/),
      error: null,
      response: {
        status_code: 200,
        request_id: expect.stringMatching(/^req_/),
        body: { object: "chat.completion", choices: [{ message: { content: "You said: one" } }] },
      },
    });
    const refused = new Map((await linesOf(client, errors)).map((line) => [line["custom_id"], line["response"]]));
    expect([...refused.keys()].toSorted()).toEqual(["b", "c", "d"]);
    expect(refused.get("b")).toMatchObject({ status_code: 400, body: { error: { param: "n" } } });
    expect(refused.get("c")).toMatchObject({ status_code: 404, body: { error: { code: "model_not_found" } } });
    expect(refused.get("d")).toMatchObject({ status_code: 400, body: { error: { param: "stream" } } });
    const file = await client.files.retrieve(output ?? "");
    expect(file).toMatchObject({ purpose: "batch_output", filename: `${batch.id}_output.jsonl` });
    expect(file.bytes).toBe((await (await client.files.content(file.id)).arrayBuffer()).byteLength);
    expect((await client.batches.list()).data).toMatchObject([{ id: batch.id, status: "completed" }]);
    await expect(client.batches.cancel(batch.id)).rejects.toThrow("completed");
  });

  test.each([
    ["/v1/completions", { prompt: "one" }, { object: "text_completion" }],
    ["/v1/responses", { input: "one" }, { object: "response", status: "completed" }],
  ])("run requests of %s", async (url, members, answer) => {
    const client = (await opened()).openai();
    const line = { custom_id: "a", method: "POST", url, body: { model: "echo", ...members } };
    const { output_file_id: output } = await ended(client, (await created(client, [line], url)).id);
    expect(await linesOf(client, output)).toMatchObject([{ response: { body: answer } }]);
  });

  test("fail with the lines that are wrong", async () => {
    const client = (await opened()).openai();
    const wrong = [
      JSON.stringify(chatLine("a", "x")),
      "{",
      JSON.stringify(chatLine("a", "y")),
      "",
      JSON.stringify({ ...chatLine("b", "x"), url: "/v1/responses" }),
      JSON.stringify({ ...chatLine("c", "x"), body: undefined }),
      `{"custom_id":"d","method":"POST","url":"/v1/chat/completions","body":${"[".repeat(100_000)}`,
    ].join("\n");
    const batch = await ended(client, (await created(client, wrong)).id);
    expect(batch).toMatchObject({ status: "failed", output_file_id: null, failed_at: expect.any(Number) });
    expect(batch.errors?.data?.map(({ code, line }) => [code, line])).toEqual([
      ["invalid_json_line", 2],
      ["duplicate_custom_id", 3],
      ["url_mismatch", 5],
      ["missing_required_parameter", 6],
      ["invalid_json_line", 7],
    ]);
    expect((await ended(client, (await created(client, "\n")).id)).errors?.data).toMatchObject([
      { code: "empty_file" },
    ]);
    await expect(
      client.batches.create({ input_file_id: "file-none", endpoint: "/v1/responses", completion_window: "24h" }),
    ).rejects.toThrow("404");
    await expect(created(client, [], "/v1/moderations")).rejects.toThrow("400");
  });

  test("are cancelled with partial results, and the program of a running line is stopped", async () => {
    let stopped = 0;
    const slow: Program = async function* ({ messages, signal }) {
      if (messages.at(-1)?.content === "fast") {
        yield "done";
        return;
      }
      signal.addEventListener("abort", () => stopped++);
      yield "begun";
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    const client = (await opened({ batchConcurrency: 2 }, slow)).openai();
    const lines = [chatLine("a", "fast"), ...["b", "c", "d"].map((id) => chatLine(id, "slow"))];
    const { id } = await created(client, lines);
    await expect.poll(async () => (await client.batches.retrieve(id)).request_counts?.completed).toBe(1);
    expect(await client.batches.cancel(id)).toMatchObject({ status: "cancelling", cancelling_at: expect.any(Number) });
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: "cancelled", request_counts: { total: 4, completed: 1, failed: 3 } });
    expect(await linesOf(client, batch.output_file_id)).toMatchObject([{ custom_id: "a" }]);
    const unanswered = await linesOf(client, batch.error_file_id);
    expect(unanswered.map(({ custom_id: one }) => String(one)).toSorted()).toEqual(["b", "c", "d"]);
    expect(unanswered[0]).toMatchObject({ response: null, error: { code: "batch_cancelled" } });
    await expect.poll(() => stopped).toBeGreaterThan(0);
  });

  test("belong to one client, have its models and limits, and never run more lines than configured", async () => {
    let [running, most] = [0, 0];
    const counting: Program = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return "done";
    };
    const [ann, ben] = [keyOf("ann"), keyOf("ben", { models: ["other"] })];
    const keys = [ann.entry, ben.entry];
    const { openai } = await opened({ keys, batchConcurrency: 3 }, counting);
    const client = openai(ann.key);
    const lines = Array.from({ length: 40 }, (_, at) => chatLine(`line ${at}`, `${at % 2}`));
    const { id } = await created(client, lines);
    expect(await ended(client, id)).toMatchObject({ request_counts: { total: 40, completed: 40, failed: 0 } });
    expect(most).toBe(3);
    const other = openai(ben.key);
    await expect(other.batches.retrieve(id)).rejects.toThrow("404");
    await expect(other.batches.cancel(id)).rejects.toThrow("404");
    expect((await other.batches.list()).data).toEqual([]);
    const refused = await ended(other, (await created(other, [chatLine("a", "x")])).id);
    expect(await linesOf(other, refused.error_file_id)).toMatchObject([{ response: { status_code: 404 } }]);
  });

  test("repeat a line that is refused for a while, and keep other refusals", async () => {
    let asked = 0;
    const busy = keyOf("ann", { concurrency: 1 });
    const slow: Program = async () => {
      asked++;
      await new Promise((resolve) => setImmediate(resolve));
      return "done";
    };
    const { openai } = await opened({ keys: [busy.entry], batchConcurrency: 2 }, slow);
    const client = openai(busy.key);
    const { id } = await created(
      client,
      ["a", "b", "c"].map((name) => chatLine(name, "x")),
    );
    expect(await ended(client, id)).toMatchObject({ request_counts: { completed: 3, failed: 0 } });
    expect(asked).toBe(3);
  });
});

describe("Anthropic's Message Batches", () => {
  const request = (id: string, content: string, more: object = {}) => ({
    custom_id: id,
    params: { model: "echo", max_tokens: 9, messages: [{ role: "user" as const, content }], ...more },
  });

  test("are created, listed, read to their results and deleted", async () => {
    const { anthropic, openai } = await opened();
    const client = anthropic();
    const batch = await client.messages.batches.create({
      requests: [request("a", "one"), request("b", "two", { messages: "wrong" })],
    });
    expect(batch).toMatchObject({ type: "message_batch", processing_status: "in_progress", results_url: null });
    expect(batch.id).toMatch(/^msgbatch_01[1-9A-Za-z]{22}$/);
    expect(batch.request_counts).toEqual({ processing: 2, succeeded: 0, errored: 0, canceled: 0, expired: 0 });
    const current = () => client.messages.batches.retrieve(batch.id);
    await expect.poll(async () => (await current()).processing_status).toBe("ended");
    const after = await current();
    expect(after.request_counts).toEqual({ processing: 0, succeeded: 1, errored: 1, canceled: 0, expired: 0 });
    const results = new Map<string, Anthropic.Messages.MessageBatchResult>();
    for await (const { custom_id: id, result } of await client.messages.batches.results(batch.id))
      results.set(id, result);
    expect(results.get("a")).toMatchObject({
      type: "succeeded",
      message: { type: "message", content: [{ type: "text", text: "You said: one" }] },
    });
    expect(results.get("b")).toMatchObject({
      type: "errored",
      error: { type: "error", error: { type: "invalid_request_error" } },
    });
    expect((await client.messages.batches.list({ limit: 1 })).data).toEqual([after]);
    await expect(openai().batches.retrieve(batch.id)).rejects.toThrow("404");
    expect(await client.messages.batches.delete(batch.id)).toEqual({ id: batch.id, type: "message_batch_deleted" });
    await expect(current()).rejects.toThrow("not_found_error");
    expect((await client.messages.batches.list()).data).toEqual([]);
  });

  test("refuse requests without ids of their own, and results before the end", async () => {
    const never: Program = async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return "";
    };
    const client = (await opened({}, never)).anthropic();
    const create = (requests: ReturnType<typeof request>[]) => client.messages.batches.create({ requests });
    await expect(create([])).rejects.toThrow("at least 1 item");
    await expect(create([request("a", "x"), request("a", "y")])).rejects.toThrow("requests.1.custom_id");
    await expect(create([request("a b", "x")])).rejects.toThrow("requests.0.custom_id");
    const { id } = await create([request("a", "x")]);
    await expect(client.messages.batches.delete(id)).rejects.toThrow("Cancel it");
    await expect(client.messages.batches.results(id)).rejects.toThrow("No batch `results_url`");
    expect(await client.messages.batches.cancel(id)).toMatchObject({ processing_status: "canceling" });
    await expect.poll(async () => (await client.messages.batches.retrieve(id)).processing_status).toBe("ended");
    const results = [];
    for await (const one of await client.messages.batches.results(id)) results.push(one);
    expect(results).toEqual([{ custom_id: "a", result: { type: "canceled" } }]);
  });
});
