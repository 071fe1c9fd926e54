import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { readCaptures } from "../../src/judge/capture/read-captures.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { builtMain } from "../support/serve.ts";
import { chat, json } from "../support/transports.ts";
import { listed, replayed } from "./support.ts";

/** The members that HTTP Archive 1.2 requires, and those of its optional ones that Truewire writes. Members of one's own begin with "_". */
const pairs = z.array(z.strictObject({ name: z.string(), value: z.string() }));
const members = z.object({
  startedDateTime: z.iso.datetime(),
  time: z.number().nonnegative(),
  request: z.strictObject({
    method: z.string(),
    url: z.url(),
    httpVersion: z.string(),
    cookies: z.array(z.never()),
    headers: pairs,
    queryString: pairs,
    postData: z.strictObject({ mimeType: z.string(), text: z.string(), comment: z.string().optional() }).optional(),
    headersSize: z.int(),
    bodySize: z.int(),
  }),
  response: z.strictObject({
    status: z.int(),
    statusText: z.string(),
    httpVersion: z.string(),
    cookies: z.array(z.never()),
    headers: pairs,
    content: z.strictObject({
      size: z.int().nonnegative(),
      mimeType: z.string(),
      text: z.string(),
      comment: z.string().optional(),
    }),
    redirectURL: z.string(),
    headersSize: z.int(),
    bodySize: z.int(),
  }),
  cache: z.strictObject({}),
  timings: z.strictObject({ blocked: z.number(), send: z.number(), wait: z.number(), receive: z.number() }),
  comment: z.string().optional(),
});
const entry = members
  .catchall(z.unknown())
  .refine((one) => Object.keys(one).every((name) => name in members.shape || name.startsWith("_")))
  // Source: HTTP Archive 1.2, "timings".
  .refine(({ time, timings }) => Math.abs(time - Object.values(timings).reduce((sum, ms) => sum + ms, 0)) < 0.1);
const har = z.strictObject({
  log: z.strictObject({
    version: z.literal("1.2"),
    creator: z.strictObject({ name: z.string(), version: z.string() }),
    entries: z.array(entry),
  }),
});

const secrets = ["sk-of-the-client-1234", "another-key-1234", "session=of-a-browser"];
const body = { model: "scripted", messages: [{ role: "user", content: "Hi, é" }], stream: true };

const folder = mkdtempSync(join(tmpdir(), "truewire-export-"));
let server: TruewireServer;
let text = "";
beforeAll(async () => {
  const engine = new ScriptedEngine(() => answer(["Hello", " there, é"]));
  server = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine }] });
  const [key = "", other = "", cookie = ""] = secrets;
  const headers = { authorization: `Bearer ${key}`, "x-api-key": other, cookie, "session-id": "one" };
  const ask = async (body: object): Promise<string> => {
    const init = json(body);
    return (
      await fetch(`${server.url}/v1/chat/completions`, { ...init, headers: { ...init.headers, ...headers } })
    ).text();
  };
  text = await ask(body);
  await ask({ ...body, stream: false });
  await ask({ ...body, model: "nowhere" });
  await (await fetch(`${server.url}/v1/chat/completions`, chat("of another client"))).text();
});
afterAll(async () => {
  await server.close(0);
  rmSync(folder, { recursive: true, force: true });
});

async function exported(query: string): Promise<string> {
  const response = await fetch(`${server.url}/admin/requests/export${query}`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-disposition")).toMatch(/^attachment; filename="requests\.(har|jsonl)"$/);
  expect(response.headers.get("cache-control")).toBe("no-store");
  const text = await response.text();
  for (const secret of secrets) expect(text).not.toContain(secret);
  return text;
}

async function session(): Promise<string> {
  const [first] = (await listed(server.url)).requests;
  return `thread=${first?.thread}`;
}

test("a session as a recording: replay, check and repair take it", async () => {
  const recording = await exported(`?${await session()}`);
  expect(recording.trim().split("\n")).toHaveLength(3);
  const file = join(folder, "session.jsonl");
  writeFileSync(file, recording);
  expect(await replayed(file, body)).toBe(text);
  const checked = spawnSync(process.execPath, [builtMain, "check", "--file", file, "--format", "json"], {
    encoding: "utf8",
  });
  expect(JSON.parse(checked.stdout)).toMatchObject({ counts: { error: 0 } });
  const repaired = spawnSync(process.execPath, [builtMain, "repair", "--jsonl"], {
    input: recording,
    encoding: "utf8",
  });
  expect(repaired.stdout.trim().split("\n")).toHaveLength(3);
});

test("requests as a HAR file", async () => {
  const text = await exported(`?format=har&${await session()}`);
  const { log } = har.parse(JSON.parse(text));
  expect(log.entries.map(({ response }) => response.status)).toEqual([200, 200, 404]);
  const [first] = log.entries;
  expect(first?.request).toMatchObject({ method: "POST", url: `${server.url}/v1/chat/completions` });
  expect(JSON.parse(first?.request.postData?.text ?? "")).toEqual(body);
  expect(first?.request.headers).toContainEqual({ name: "authorization", value: "Bearer [key]" });
  expect(first?.response.content.text).toMatch(/data: \[DONE\]\n\n$/);
  expect(first?.response.content.mimeType).toMatch(/^text\/event-stream/);
  // What reads HAR files of browsers for `truewire replay` reads ours.
  const read = readCaptures(text, "session.har");
  expect(read.map(({ request, response }) => [request.path, response.status])).toEqual([
    ["/v1/chat/completions", 200],
    ["/v1/chat/completions", 200],
    ["/v1/chat/completions", 404],
  ]);
});

test("chosen requests, by their ids and by filters", async () => {
  const { requests } = await listed(server.url);
  const ids = [requests[0]?.id, requests[3]?.id];
  const entries = async (query: string): Promise<number> =>
    har.parse(JSON.parse(await exported(`?format=har${query}`))).log.entries.length;
  expect(await entries("")).toBe(4);
  expect(await entries(`&id=${ids.join("&id=")}`)).toBe(2);
  expect(await entries(`&id=${ids.join("&id=")}&${await session()}`)).toBe(1);
  expect(await entries("&status=404")).toBe(1);
});

test("an unknown format and an empty choice are refused", async () => {
  const refusal = async (query: string): Promise<unknown> => {
    const response = await fetch(`${server.url}/admin/requests/export${query}`);
    return [response.status, ((await response.json()) as { error: { message: string } }).error.message];
  };
  expect(await refusal("?format=xml")).toEqual([400, "Unknown format 'xml'. The formats are har, recording."]);
  expect(await refusal("?format=har&id=req_nobody")).toEqual([409, expect.stringContaining("No chosen request")]);
  expect(await refusal("?modle=x")).toEqual([400, expect.stringContaining("Unknown filter: 'modle'")]);
});
