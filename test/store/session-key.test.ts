import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTurnKey } from "../../src/serve/app/open-turn-key.ts";
import { nodeRuntime } from "../../src/serve/app/runtime.ts";
import { ConfigError } from "../../src/serve/config/config-error.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { parseConfig } from "../../src/serve/config/schema.ts";
import { openSecret } from "../../src/serve/kv/open.ts";
import { silentLog } from "../../src/serve/server/log.ts";
import { sourceId, turnKeyOf } from "../../src/serve/server/turn-key.ts";
import { builtMain } from "../support/serve.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-key-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const fresh = (): string => join(folder, String(count++));

async function keyOf(config: TruewireConfig, lines: unknown[] = []): Promise<string> {
  const log = { ...silentLog, debug: (...line: unknown[]) => void lines.push(line) };
  return Buffer.from(await openTurnKey(parseConfig(config), log, nodeRuntime)).toString("hex");
}

test("the secret of the configuration makes the same key everywhere, and comes before any other place", async () => {
  const sessionKey = "0123456789abcdef0123456789abcdef";
  const store = fresh();
  expect(await keyOf({ sessionKey, store })).toBe(Buffer.from(turnKeyOf(sessionKey)).toString("hex"));
  expect(await keyOf({ sessionKey: `${sessionKey}1` })).not.toBe(await keyOf({ sessionKey }));
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder of responses keeps it, else the folder of learned profiles; both for their user only", async () => {
  const [store, profiles] = [fresh(), fresh()];
  mkdirSync(profiles);
  const profilesFile = join(profiles, "truewire.profiles.json");
  const ofStore = await keyOf({ store, profilesFile });
  expect(await keyOf({ store })).toBe(ofStore);
  expect(readdirSync(profiles)).toEqual([]);
  const ofProfiles = await keyOf({ profilesFile });
  expect(await keyOf({ profilesFile })).toBe(ofProfiles);
  expect(ofProfiles).not.toBe(ofStore);
  for (const place of [store, profiles]) {
    expect(readdirSync(place)).toEqual(["truewire.key"]);
    expect(statSync(join(place, "truewire.key")).mode & 0o777).toBe(0o600);
  }
});

test("without a place it is random, and a line of the log says so without the key", async () => {
  const lines: unknown[] = [];
  const missing = join(folder, "file");
  writeFileSync(missing, "");
  for (const config of [{}, { profilesFile: join(missing, "truewire.profiles.json") }]) {
    const [one, other] = [await keyOf(config, lines), await keyOf(config, lines)];
    expect(one).not.toBe(other);
    for (const key of [one, other]) expect(JSON.stringify(lines)).not.toContain(key);
  }
  expect(lines).toHaveLength(4);
  expect(JSON.stringify(lines)).toContain("sessionKey");
});

test("a store whose key cannot be read is an error that says what to do, without the file's content", async () => {
  const store = fresh();
  mkdirSync(store);
  writeFileSync(join(store, "truewire.key"), "too-short-secret");
  const failure = await keyOf({ store }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ConfigError);
  expect(String(failure)).toMatch(/store.*Delete it, and a new one is written.*sessionKey/s);
  expect(String(failure)).not.toContain("too-short-secret");
});

// Processes that start together each wrote a key of their own: values that one had sealed were damaged to the others after a restart.
test("processes that start at the same time get the key of one, whole", async () => {
  const path = join(fresh(), "truewire.key");
  const module = pathToFileURL(join(builtMain, "../../serve/kv/secret-file.js")).href;
  const script = `const { openSecretFile } = await import(${JSON.stringify(module)});
    process.stdin.once("data", async () => {
      const all = await Promise.all(Array.from({ length: 20 }, (_, at) => openSecretFile(${JSON.stringify(path)}, process.pid + "-" + at + "x".repeat(40))));
      console.log(JSON.stringify([...new Set(all)]));
      process.exit();
    });
    console.log("ready");`;
  const children = Array.from({ length: 3 }, () =>
    spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["pipe", "pipe", "inherit"],
    }),
  );
  const outputs = children.map((child) => {
    let text = "";
    const ready = new Promise<void>((resolve, reject) => {
      child.once("close", () => reject(new Error("the process did not start")));
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes("ready")) resolve();
      });
    });
    return { ready, whole: new Promise<string>((resolve) => child.once("close", () => resolve(text))) };
  });
  await Promise.all(outputs.map(({ ready }) => ready));
  for (const child of children) child.stdin.write("go\n");
  const secrets = (await Promise.all(outputs.map(({ whole }) => whole))).map((text) =>
    text.replace("ready\n", "").trim(),
  );
  expect(new Set(secrets)).toHaveLength(1);
  expect(JSON.parse(secrets[0] ?? "")).toEqual([readFileSync(path, "utf8").trim()]);
  expect(readdirSync(join(path, ".."))).toEqual(["truewire.key"]);
});

test("the id of a source is short, differs between keys and texts, and has nothing of the text", () => {
  const [one, other] = [turnKeyOf("a".repeat(32)), turnKeyOf("b".repeat(32))];
  const text = '["https://api.example.com","sk-secret-0123456789"]';
  expect(sourceId(one, text)).toMatch(/^[\w-]{12}$/);
  expect(sourceId(one, text)).toBe(sourceId(one, text));
  expect(new Set([sourceId(one, text), sourceId(other, text), sourceId(one, `${text} `)])).toHaveLength(3);
});

describe.skipIf(redisCommand() === undefined)("the key in Redis", () => {
  let server: ChildProcess;
  let store: string;
  beforeAll(async () => {
    const port = await freePort();
    server = await startRedis(port);
    store = `redis://127.0.0.1:${port}`;
  });
  afterAll(() => void server.kill("SIGKILL"));

  test("instances that start at the same time share it, and it stays", async () => {
    const keys = await Promise.all(Array.from({ length: 8 }, () => keyOf({ store })));
    expect(new Set(keys)).toHaveLength(1);
    expect(await keyOf({ store })).toBe(keys[0]);
    expect(await openSecret(store, "another")).not.toBe("another");
  });

  test("a Redis that is away is an error at the start, without its password", async () => {
    const away = `redis://:sk-password-0123@127.0.0.1:${await freePort()}`;
    const failure = await keyOf({ store: away }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(String(failure)).not.toContain("sk-password");
  });
});
