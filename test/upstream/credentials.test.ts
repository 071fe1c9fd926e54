import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { UpstreamModel } from "../../src/serve/config/model-schema.ts";
import { recordingLog } from "../keys/support.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { chat } from "../support/transports.ts";
import { startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

const opened: { close(graceMs?: number): Promise<unknown> }[] = [];
const folder = mkdtempSync(join(tmpdir(), "truewire-credential-"));
const counter = join(folder, "runs");
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close(0)));
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => writeFileSync(counter, ""));
const runs = (): number => readFileSync(counter, "utf8").length;

/** A command that prints `token-1`, `token-2`, … of this test, and counts its runs. */
const command = [
  process.execPath,
  "-e",
  `const fs = require("node:fs"); fs.appendFileSync(${JSON.stringify(counter)}, "x");
   console.log("token-" + fs.readFileSync(${JSON.stringify(counter)}).length + "-0123456789")`,
];
const failing = [
  process.execPath,
  "-e",
  `console.error("trying\\nno login for key sk-pooled-0123456789"); process.exit(3)`,
];

async function gateway(
  key: UpstreamModel["key"],
  isAccepted: (authorization: string) => boolean = () => true,
  more: Partial<UpstreamModel> = {},
  store?: string,
): Promise<{
  server: TruewireServer;
  vendor: ScriptedServer;
  log: ReturnType<typeof recordingLog>;
  sent: () => string[];
}> {
  const vendor = await startScripted((response) => {
    const { authorization = "" } = vendor.requests.at(-1)?.headers ?? {};
    const isGood = isAccepted(authorization);
    response.writeHead(isGood ? 200 : 401, { "content-type": "application/json" });
    const hello = { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }], data: [{ embedding: [1] }] };
    response.end(JSON.stringify(isGood ? hello : { error: { message: `Invalid: ${authorization}` } }));
  });
  const log = recordingLog();
  const upstream: UpstreamModel = {
    kind: "upstream",
    name: "up",
    url: vendor.url,
    api: "chat",
    key,
    models: ["m"],
    ...more,
  };
  const server = await createServer(
    { port: 0, inspect: true, models: [upstream], ...(store !== undefined && { store }) },
    { log: log.log },
  );
  opened.push(server, vendor);
  return { server, vendor, log, sent: () => vendor.requests.map(({ headers }) => headers.authorization ?? "") };
}

async function ask({ url }: TruewireServer, text = "Hello", path = "chat/completions"): Promise<[number, string]> {
  const init = chat(text, { model: "m", ...(path === "embeddings" && { input: text }) });
  const response = await fetch(`${url}/v1/${path}`, init);
  return [response.status, await response.text()];
}

describe("a key that a command prints", () => {
  test("50 requests at once run it once; later ones, and embeddings, use the same token", async () => {
    const { server, sent } = await gateway({ command });
    const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => ask(server, `conversation ${at}`)));
    expect(new Set(answers.map(([status]) => status))).toEqual(new Set([200]));
    expect((await ask(server, "Hello", "embeddings"))[0]).toBe(200);
    expect([runs(), ...new Set(sent())]).toEqual([1, "Bearer token-1-0123456789"]);
  });

  test("a 401 renews it once, and the client sees nothing of it; text at spaces is the command", async () => {
    const script = join(folder, "token.cjs");
    writeFileSync(script, command[2] ?? "");
    const { server, sent } = await gateway({ command: `${process.execPath}  ${script}`, expires: "1h" }, (value) =>
      value.includes("token-2"),
    );
    expect((await ask(server))[0]).toBe(200);
    expect(sent()).toEqual(["Bearer token-1-0123456789", "Bearer token-2-0123456789"]);
    expect((await ask(server, "Hello", "embeddings"))[0]).toBe(200);
    expect(runs()).toBe(2);
  });

  test("where each token is refused, the client gets the 401, the command does not run for each request, and no token is told", async () => {
    const { server, log } = await gateway({ command }, () => false);
    for (let at = 0; at < 5; at++) {
      const [status, text] = await ask(server, `conversation ${at}`);
      expect(status).toBe(401);
      expect(text).not.toContain("token-");
    }
    expect(runs()).toBe(2);
    const listed = await (await fetch(`${server.url}/admin/requests`)).text();
    const ids = [...listed.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id);
    expect(ids).toHaveLength(5);
    const shown = ids.map(async (id) => (await fetch(`${server.url}/admin/requests/${id}`)).text());
    for (const text of [listed, ...(await Promise.all(shown)), JSON.stringify(log.lines)])
      expect(text).not.toMatch(/token-\d-0/);
  });

  test.each([
    ["an exit code", failing, /up cannot be obtained: '.*' ended with exit code 3: no login for key \[key\]/],
    ["no such program", ["/no/such/program"], /'\/no\/such\/program' was not found/],
    ["no output", [process.execPath, "-e", ""], /printed nothing/],
  ])("a failure says whose it is and why, without secrets: %s", async (_, broken, words) => {
    const { server } = await gateway({ command: broken }, () => true, {
      retries: 0,
      headers: { "x-key": "sk-pooled-0123456789" },
    });
    const [status, text] = await ask(server);
    expect(status).toBe(503);
    const { error } = JSON.parse(text) as { error: { message: string; code: string } };
    expect(error).toMatchObject({ message: expect.stringMatching(words), code: "credential_unavailable" });
    const ofMessages = await fetch(`${server.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] }),
    });
    expect(await ofMessages.json()).toMatchObject({ type: "error", error: { message: expect.stringMatching(words) } });
  });

  test.skipIf(redisCommand() === undefined)(
    "instances share a token through Redis, which does not show it; one that is refused is replaced by one of them",
    async () => {
      const port = await freePort();
      const redis = await startRedis(port);
      onTestFinished(() => void redis.kill("SIGKILL"));
      const store = `redis://127.0.0.1:${port}`;
      const key = { command, share: "a secret of the instances" };
      let refused = "";
      const all = await Promise.all([1, 2, 3].map(() => gateway(key, (value) => value !== refused, {}, store)));
      const askAll = async (): Promise<number[]> =>
        (await Promise.all(all.map(({ server }) => ask(server)))).map(([status]) => status);
      expect(await askAll()).toEqual([200, 200, 200]);
      expect(all.flatMap(({ sent }) => sent())).toEqual(Array(3).fill("Bearer token-1-0123456789"));
      expect(runs()).toBe(1);

      const raw = await createClient({ url: store }).connect();
      const names = await raw.keys("*credentials*");
      expect(names).toHaveLength(1);
      const kept = (await raw.get(names[0] ?? "")) ?? "";
      raw.destroy();
      expect(kept).not.toBe("");
      expect(kept + names.join()).not.toMatch(/token-|node/);
      expect(Buffer.from(kept, "base64").toString("latin1")).not.toContain("token-");

      refused = "Bearer token-1-0123456789";
      expect(await askAll()).toEqual([200, 200, 200]);
      expect(all.map(({ sent }) => sent().at(-1))).toEqual(Array(3).fill("Bearer token-2-0123456789"));
      expect(runs()).toBe(2);
      for (const { log } of all) expect(JSON.stringify(log.lines)).not.toMatch(/token-\d-0/);
    },
  );

  test("in a pool: a conversation whose command fails goes to another key", async () => {
    const key = [{ command: failing, weight: 50 }, { command }, "sk-pooled-0123456789"];
    const { server, sent } = await gateway(key);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(server, `conversation ${at}`)));
    expect(new Set(answers.map(([status]) => status))).toEqual(new Set([200]));
    expect(sent().filter((value) => !/^Bearer (token-1|sk-pooled)-0123456789$/.test(value))).toEqual([]);
  });

  test("nothing in a command is interpreted by a shell", async () => {
    const { server, sent } = await gateway({ command: [process.execPath, "-p", "process.argv[1]", "$(id);`id`>x"] });
    expect((await ask(server))[0]).toBe(200);
    expect(sent()).toEqual(["Bearer $(id);`id`>x"]);
  });

  test.each([
    [{ command: [] }, "models[0].key"],
    [{ command: "tool", expires: "soon" }, "models[0].key"],
    [{ command: "tool", weight: 2 }, "models[0].key"],
    [{ command: "tool", share: "short" }, "models[0].key"],
    [{ command: "tool", share: "a secret of the instances" }, /models\[0\]\.key: has a share.*Set store: redis:/],
    [[{ command: "tool", share: "a secret of the instances" }], /models\[0\]\.key: has a share/],
  ])("%j is refused at the start", async (key, place) => {
    const models = [{ kind: "upstream" as const, url: "http://127.0.0.1:1", key: key as never, models: ["m"] }];
    await expect(createServer({ port: 0, models })).rejects.toThrow(place);
  });
});
