import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { runTruewire, startTruewire } from "../support/serve.ts";

const program = "test/page/talker.js";
const caches = mkdtempSync(join(tmpdir(), "truewire-compiled-"));
const folder = join(caches, "truewire", "compiled");
afterEach(() => rmSync(caches, { recursive: true, force: true }));

/** Starts and stops a server. Returns the file with its compiled code, and whether this process has written it. */
async function start(): Promise<{ readonly file: string; readonly written: boolean }> {
  mkdirSync(caches, { recursive: true });
  const earlier = new Date(0);
  for (const name of namesIn(folder)) utimesSync(join(folder, name), earlier, earlier);
  const server = await startTruewire([program], { env: { XDG_CACHE_HOME: caches } });
  expect((await fetch(`${server.url}/v1/models`)).status).toBe(200);
  await server.stop();
  const names = namesIn(folder).filter((name) => name.startsWith("server-"));
  expect(names).toHaveLength(1);
  const file = join(folder, names[0] ?? "");
  return { file, written: statSync(file).mtimeMs > 0 };
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

test("the code that the first start has compiled is used by the second one", async () => {
  expect(await start()).toMatchObject({ written: true });
  expect(await start()).toMatchObject({ written: false });
});

test("damaged code, and code of another script, is compiled again", async () => {
  const { file } = await start();
  const whole = readFileSync(file);
  const flipped = Buffer.from(whole);
  flipped.fill(0xff, whole.length / 2, whole.length / 2 + 4096);
  const other = Buffer.from(whole);
  // V8's digest of the source follows its own version.
  other[4 + 8] = (other[4 + 8] ?? 0) ^ 1;
  other.writeUInt32LE(crc32(other.subarray(4)));
  for (const bytes of [flipped, other, whole.subarray(0, 1000), Buffer.alloc(0)]) {
    writeFileSync(file, bytes);
    expect(await start()).toMatchObject({ written: true });
    expect(readFileSync(file).length).toBeGreaterThan(1_000_000);
  }
});

test("where compiled code cannot be stored, a server starts without it", async () => {
  mkdirSync(caches, { recursive: true });
  writeFileSync(join(caches, "truewire"), "not a folder");
  for (const place of [caches, join(caches, "missing")]) {
    const server = await startTruewire([program], { env: { XDG_CACHE_HOME: place } });
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(200);
    await server.stop();
  }
});

test("a stack trace has the places in the script", async () => {
  const { stderr } = await runTruewire(["serve", "./missing.gguf"], { env: { TRUEWIRE_DEBUG: "1" } });
  expect(stderr).toMatch(/\n {4}at .*server-\w+\.script\.js:\d+:\d+/);
});
