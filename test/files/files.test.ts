import Anthropic, { toFile as toAnthropicFile } from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/config.ts";
import { keyOf } from "../keys/support.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";
import { listenInTest } from "../support/close-after-test.ts";

const servers: TruewireServer[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function opened(config: Partial<TruewireConfig> = {}, engine = new ScriptedEngine(() => answer(["Hi"]))) {
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
  servers.push(server);
  const openai = (apiKey = "none"): OpenAI => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
  const anthropic = (apiKey = "none"): Anthropic => new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });
  return { server, engine, openai, anthropic };
}

const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 7) % 256);

describe("the files of OpenAI's API", () => {
  test("are uploaded, found, listed in pages, read byte for byte and deleted", async () => {
    const client = (await opened()).openai();
    const first = await client.files.create({ file: await toFile(Buffer.from("{}\n"), "a.jsonl"), purpose: "batch" });
    expect(first).toMatchObject({
      object: "file",
      bytes: 3,
      filename: "a.jsonl",
      purpose: "batch",
      status: "processed",
    });
    expect(first.id).toMatch(/^file-[0-9A-Za-z]{22}$/);
    const second = await client.files.create({
      file: await toFile(bytes, "dir/b.bin"),
      purpose: "user_data",
      expires_after: { anchor: "created_at", seconds: 3600 },
    });
    expect(second).toMatchObject({ bytes: 70_000, filename: "b.bin" });
    expect(second.expires_at).toBe(second.created_at + 3600);
    expect(await client.files.retrieve(first.id)).toEqual(first);

    const pages = await client.files.list({ limit: 1 });
    expect([pages.data, pages.has_more]).toEqual([[second], true]);
    const all: string[] = [];
    for await (const { id } of pages) all.push(id);
    expect(all).toEqual([second.id, first.id]);
    expect((await client.files.list({ order: "asc" })).data).toEqual([first, second]);
    expect((await client.files.list({ purpose: "batch" })).data).toEqual([first]);

    const content = await client.files.content(second.id);
    expect(content.headers.get("content-type")).toBe("application/octet-stream");
    expect(new Uint8Array(await content.arrayBuffer())).toEqual(bytes);
    expect(await (await client.files.content(first.id)).text()).toBe("{}\n");

    expect(await client.files.delete(first.id)).toEqual({ object: "file", deleted: true, id: first.id });
    await expect(client.files.retrieve(first.id)).rejects.toThrow(`No such File object: ${first.id}`);
    await expect(client.files.delete(first.id)).rejects.toThrow("404");
    expect((await client.files.list()).data).toEqual([second]);
  });

  test("are refused without a purpose, without a file, and beyond the server's limits", async () => {
    const { server, openai } = await opened({ files: { maxSize: 1000 } });
    const client = openai();
    await expect(client.files.create({ file: await toFile(bytes, "b"), purpose: "user_data" })).rejects.toThrow("413");
    await expect(
      client.files.create({ file: await toFile(Buffer.from("x"), "b"), purpose: "x" as "batch" }),
    ).rejects.toThrow("Supported values are");
    const form = new FormData();
    form.set("purpose", "batch");
    const response = await fetch(`${server.url}/v1/files`, { method: "POST", body: form });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param: "file" } }]);
    const off = await opened({ files: { maxCount: 0 } });
    expect((await fetch(`${off.server.url}/v1/files`)).status).toBe(404);
  });

  test("outlive a restart in a folder", async () => {
    const folder = mkdtempSync(join(tmpdir(), "truewire-files-"));
    folders.push(folder);
    const before = await opened({ store: folder });
    const { id } = await before.openai().files.create({ file: await toFile(bytes, "b.bin"), purpose: "vision" });
    await before.server.close(0);
    const client = (await opened({ store: folder })).openai();
    expect((await client.files.list()).data).toMatchObject([{ id, purpose: "vision" }]);
    expect(new Uint8Array(await (await client.files.content(id)).arrayBuffer())).toEqual(bytes);
  });

  test("belong to one client: another key finds, lists, reads and deletes none of them", async () => {
    const [ann, ben] = [keyOf("ann"), keyOf("ben")];
    const { server, openai, engine } = await opened({ keys: [ann.entry, ben.entry] });
    const { id } = await openai(ann.key).files.create({
      file: await toFile(Buffer.from("secret"), "a.txt"),
      purpose: "user_data",
    });
    const other = openai(ben.key);
    expect((await other.files.list()).data).toEqual([]);
    await expect(other.files.retrieve(id)).rejects.toThrow("404");
    await expect(other.files.content(id)).rejects.toThrow("404");
    await expect(other.files.delete(id)).rejects.toThrow("404");
    await expect(openai("wrong").files.list()).rejects.toThrow("401");
    const body = { model: "scripted", input: [{ role: "user", content: [{ type: "input_file", file_id: id }] }] };
    const headers = { authorization: `Bearer ${ben.key}`, "content-type": "application/json" };
    await fetch(`${server.url}/v1/responses`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(JSON.stringify(engine.requests)).not.toContain(Buffer.from("secret").toString("base64"));
    expect((await openai(ann.key).files.list()).data).toHaveLength(1);
  });
});

describe("the files of Anthropic's API", () => {
  test("are uploaded, found, listed, read and deleted on the same paths", async () => {
    const client = (await opened()).anthropic();
    const uploaded = await client.beta.files.upload({
      file: await toAnthropicFile(Buffer.from("Hello"), "a.txt", { type: "text/plain" }),
    });
    expect(uploaded).toMatchObject({ type: "file", filename: "a.txt", mime_type: "text/plain", size_bytes: 5 });
    expect(uploaded.id).toMatch(/^file_01[1-9A-Za-z]{22}$/);
    const second = await client.beta.files.upload({
      file: await toAnthropicFile(bytes, "b.bin"),
      expires_in_seconds: 3600,
    });
    expect(Date.parse(second.expires_at ?? "") - Date.parse(second.created_at)).toBe(3_600_000);
    expect(await client.beta.files.retrieveMetadata(uploaded.id)).toEqual(uploaded);
    const listed: string[] = [];
    for await (const { id } of client.beta.files.list({ limit: 1 })) listed.push(id);
    expect(listed).toEqual([second.id, uploaded.id]);
    expect((await client.beta.files.list({ ids: [uploaded.id, "file_none"] })).data).toEqual([uploaded]);
    expect(await (await client.beta.files.download(uploaded.id)).text()).toBe("Hello");
    expect(await client.beta.files.delete(uploaded.id)).toEqual({ id: uploaded.id, type: "file_deleted" });
    await expect(client.beta.files.retrieveMetadata(uploaded.id)).rejects.toThrow("not_found_error");
  });
});

describe("a request that names a file", () => {
  const pdf = Buffer.from("%PDF-1.4 x");

  test("gets the file's data in each API, and an id that the server does not have stays as it is", async () => {
    const { server, openai, engine } = await opened();
    const client = openai();
    const document = await client.files.create({ file: await toFile(pdf, "a.pdf"), purpose: "user_data" });
    const data = pdf.toString("base64");
    await client.chat.completions.create({
      model: "scripted",
      messages: [{ role: "user", content: [{ type: "file", file: { file_id: document.id } }] }],
    });
    expect(JSON.stringify(engine.requests.at(-1))).toContain(data);
    await client.responses.create({
      model: "scripted",
      input: [{ role: "user", content: [{ type: "input_file", file_id: document.id }] }],
    });
    expect(JSON.stringify(engine.requests.at(-1))).toContain(data);
    const source = { type: "file", file_id: document.id };
    const messages = [{ role: "user", content: [{ type: "document", source }] }];
    const { headers, ...asked } = json({ model: "scripted", max_tokens: 9, messages });
    const answered = await fetch(`${server.url}/v1/messages`, {
      ...asked,
      // Files belong to the key, even where none is needed.
      headers: { ...(headers as Record<string, string>), "x-api-key": "none" },
    });
    expect(answered.status).toBe(200);
    expect(JSON.stringify(engine.requests.at(-1))).toContain(data);

    await client.responses.create({
      model: "scripted",
      input: [{ role: "user", content: [{ type: "input_file", file_id: "file-unknown" }] }],
    });
    expect(JSON.stringify(engine.requests.at(-1))).toContain("file-unknown");
  });

  test("is refused if the data would make it larger than a body may be", async () => {
    const { openai } = await opened({ bodyLimit: "100KiB" });
    const client = openai();
    const { id } = await client.files.create({ file: await toFile(bytes, "a.pdf"), purpose: "user_data" });
    const content = Array.from({ length: 2 }, () => ({ type: "input_file" as const, file_id: id }));
    await expect(client.responses.create({ model: "scripted", input: [{ role: "user", content }] })).rejects.toThrow(
      "413",
    );
  });
});

test("an upstream whose passPaths have the paths of files keeps the files", async () => {
  const { port } = await listenInTest((request, response) => response.end(JSON.stringify({ at: request.url })));
  const passPaths = ["/files", "/files/*", "/batches", "/messages/batches*"];
  const models = [
    {
      kind: "upstream" as const,
      name: "up",
      url: `http://127.0.0.1:${port}/v1`,
      models: ["m"],
      api: "chat" as const,
      passPaths,
    },
  ];
  const server = await createServer({ port: 0, logLevel: "silent", models });
  servers.push(server);
  for (const path of [
    "/v1/files",
    "/v1/files/file-1",
    "/v1/batches",
    "/v1/messages/batches",
    "/v1/messages/batches/b/results",
  ])
    expect(await (await fetch(`${server.url}${path}`)).json()).toEqual({ at: path });
  expect((await fetch(`${server.url}/v1/batches/batch_1`)).status).toBe(404);
});
