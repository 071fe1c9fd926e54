import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { builtMain, runTruewire } from "../support/serve.ts";
import { inspected, listed, newest, replayed, textOf } from "./support.ts";

describe("a local model, by its clients' SDKs", () => {
  let server: FixtureServer;
  let url: string;
  let client: OpenAI;
  const model = "programmed";
  beforeAll(async () => {
    server = await serveFixture();
    url = server.baseURL.replace(/\/v1$/, "");
    client = new OpenAI({ baseURL: server.baseURL, apiKey: "sk-of-somebody", maxRetries: 0 });
  });
  afterAll(() => server.close());

  test("a streamed chat: what came, was understood, was read and written, and went out", async () => {
    const messages = [
      { role: "system" as const, content: "Be <|im_end|> brief." },
      { role: "user" as const, content: "#plain please" },
    ];
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    let text = "";
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    expect(text).toBe(said.plain);

    const request = await newest(url);
    expect(request).toMatchObject({
      api: "chat",
      model,
      stream: true,
      outcome: "finished",
      status: 200,
      finish: "stop",
    });
    expect(JSON.parse(request.request.body?.text ?? "")).toEqual({ model, messages, stream: true });
    expect(request.request.headers).toContainEqual(["authorization", "Bearer [key]"]);
    expect(JSON.stringify(request)).not.toContain("sk-of-somebody");
    const understood = JSON.parse(request.request.understood?.text ?? "") as Record<string, unknown>;
    expect(understood).toMatchObject({ model, stream: true, prompt: { kind: "chat", messages } });

    const [prompt] = request.prompts;
    if (!prompt) throw new Error("no prompt was told");
    expect(prompt.text).toContain("<|im_start|>system\nBe <|im_end|> brief.<|im_end|>");
    expect(prompt.lengths).toHaveLength(request.prompt_tokens ?? 0);
    expect(prompt.lengths.reduce((sum, length) => sum + length, 0)).toBe(prompt.text.length);
    const starts = prompt.lengths.map((_, at) => prompt.lengths.slice(0, at).reduce((sum, length) => sum + length, 0));
    const control = prompt.control.map((at) =>
      prompt.text.slice(starts[at], (starts[at] ?? 0) + (prompt.lengths[at] ?? 0)),
    );
    expect(control.slice(0, 3)).toEqual(["<|im_start|>", "<|im_end|>", "<|im_start|>"]);
    // The client's own "<|im_end|>" is no control token: the text has one more of them than the prompt has tokens.
    expect(prompt.text.split("<|im_end|>").length - 1).toBe(control.filter((text) => text === "<|im_end|>").length + 1);
    expect(prompt.quotes.map(({ start, end, role }) => [role, prompt.text.slice(start, end)])).toEqual([
      ["system", "Be <|im_end|> brief."],
      ["user", "#plain please"],
    ]);

    // With the control token that ended the turn, which no client sees.
    expect(request.written.map((written) => textOf(written.text))).toEqual([`${said.plain}<|im_end|>`]);
    const events = request.events.chunks.flatMap((batch) => batch.events);
    expect(events.at(-1)).toEqual({ type: "end", end: { kind: "done" } });
    expect(events.map((event) => (event.type === "text-delta" ? event.text : "")).join("")).toBe(said.plain);

    const body = textOf(request.response.body);
    expect(body).toMatch(/^data: \{.*data: \[DONE\]\n\n$/s);
    const times = request.response.body.chunks.map(({ ms }) => ms);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(request.ms);
    expect(request.response.headers).toContainEqual(["x-request-id", request.id]);
  });

  test("asked again, the prompt is in the cache but for its last token", async () => {
    const ask = { model, messages: [{ role: "user" as const, content: "#plain again" }] };
    await client.chat.completions.create(ask);
    await client.chat.completions.create(ask);
    const request = await newest(url);
    expect(request.cached_tokens).toBe((request.prompt_tokens ?? 0) - 1);
    expect(textOf(request.response.body)).toContain(said.plain);
  });

  test("a call shows in what the model wrote as the model wrote it", async () => {
    const tools: OpenAI.Chat.ChatCompletionTool[] = [
      {
        type: "function",
        function: { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
      },
    ];
    await client.chat.completions.create({ model, tools, messages: [{ role: "user", content: "#call" }] });
    const request = await newest(url);
    expect(textOf(request.written[0]?.text ?? { chunks: [] })).toMatch(
      /^<tool_call>\n.*"Paris".*\n<\/tool_call><\|im_end\|>$/s,
    );
    expect(request.events.chunks.flatMap((batch) => batch.events.map(({ type }) => type))).toContain("tool-call-start");
  });

  test("Responses and Messages, each with its own frames", async () => {
    await client.responses.create({ model, input: "#plain" });
    expect(await newest(url)).toMatchObject({ api: "responses", path: "/v1/responses", outcome: "finished" });
    const anthropic = new Anthropic({ baseURL: url, apiKey: "sk-ant-of-somebody", maxRetries: 0 });
    await anthropic.messages
      .stream({ model, max_tokens: 64, messages: [{ role: "user", content: "#plain" }] })
      .finalMessage();
    const request = await newest(url);
    expect(request).toMatchObject({ api: "messages", path: "/v1/messages", outcome: "finished" });
    expect(textOf(request.response.body)).toMatch(/^event: message_start\n.*event: message_stop\n/s);
    expect(request.request.headers.map(([, value]) => value)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^(Bearer )?\[key\]$/)]),
    );
    expect(JSON.stringify(request)).not.toContain("sk-ant-of-somebody");
  });

  test("an answer in the background is followed to its end", async () => {
    const { id } = await client.responses.create({ model, input: "#plain", background: true });
    await expect.poll(async () => (await client.responses.retrieve(id)).status).toBe("completed");
    const { requests } = await listed(url);
    const asked = requests.findLast(({ method, api }) => method === "POST" && api === "responses");
    expect(asked).toMatchObject({ outcome: "finished", finish: "stop" });
    const request = await inspected(url, asked ?? { id: "" });
    expect(textOf(request.written[0]?.text ?? { chunks: [] })).toBe(`${said.plain}<|im_end|>`);
  });

  test("errors, and a client that leaves", async () => {
    await expect(client.chat.completions.create({ model, messages: [], temperature: 9 })).rejects.toThrow();
    expect(await newest(url)).toMatchObject({ model, outcome: "refused", status: 400, error: expect.any(String) });
    await fetch(`${url}/v1/nowhere`);
    expect(await newest(url)).toMatchObject({ method: "GET", path: "/v1/nowhere", status: 404, outcome: "refused" });

    const leaving = new AbortController();
    const stream = await client.chat.completions.create(
      { model, messages: [{ role: "user", content: "#endless" }], stream: true },
      { signal: leaving.signal },
    );
    for await (const _ of stream) {
      const open = (await listed(url, "?outcome=open")).requests;
      expect(open).toMatchObject([{ model, stream: true, status: 200 }]);
      break;
    }
    leaving.abort();
    const request = await newest(url);
    expect(request.outcome).toBe("cancelled");
    expect(textOf(request.response.body)).toContain(" tick");
  });

  test("the list is filtered, and told as it changes", async () => {
    const leaving = new AbortController();
    const response = await fetch(`${url}/admin/requests/live`, { signal: leaving.signal });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toContain(": listening");
    await client.completions.create({ model, prompt: "<|script:plain|>" });
    let told = "";
    while (!told.includes('"outcome":"finished"')) told += (await reader?.read())?.value ?? "";
    leaving.abort();
    expect(told).toContain('"api":"completions"');

    const all = (await listed(url)).requests;
    const { number } = all.at(-1) ?? { number: 0 };
    expect((await listed(url, `?since=${number - 1}`)).requests.map((request) => request.number)).toEqual([number]);
    expect((await listed(url, "?outcome=cancelled")).requests.every(({ outcome }) => outcome === "cancelled")).toBe(
      true,
    );
    expect((await listed(url, "?model=nobody")).requests).toEqual([]);
    expect((await listed(url, `?model=${model}`)).requests.length).toBeGreaterThan(3);
    // Whoever looks is not among those that are looked at.
    expect(all.filter(({ path }) => path.includes("admin"))).toEqual([]);
  });

  test("its file is one of truewire record's: replay, repair and check take it", async () => {
    const body = { model, messages: [{ role: "user" as const, content: "#plain for a file" }], stream: true as const };
    const answer = await client.chat.completions.create(body).asResponse();
    const text = await answer.text();
    const { id } = await newest(url);
    const response = await fetch(`${url}/admin/requests/${id}/capture`);
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${id}.jsonl"`);
    const capture = await response.text();
    const folder = mkdtempSync(join(tmpdir(), "truewire-inspect-"));
    try {
      const file = join(folder, "capture.jsonl");
      writeFileSync(file, capture);
      expect(await replayed(file, body)).toBe(text);
      const checked = await runTruewire(["check", "--file", file, "--format", "json"]);
      expect(checked.code).toBe(0);
      expect(JSON.parse(checked.stdout)).toMatchObject({ counts: { error: 0 } });
      const repaired = spawnSync(process.execPath, [builtMain, "repair"], { input: capture, encoding: "utf8" });
      expect(repaired.stdout).toBe(text);
      const lines = spawnSync(process.execPath, [builtMain, "repair", "--jsonl"], { input: capture + capture });
      expect(String(lines.stdout).trim().split("\n")).toHaveLength(2);
    } finally {
      rmSync(folder, { recursive: true });
    }
    // One that is not there, or is not over, has no file.
    expect((await fetch(`${url}/admin/requests/req_nobody/capture`)).status).toBe(404);
  });
});
