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
import { afterEach, beforeEach, expect, test } from "vitest";
import { runTruewire } from "../support/serve.ts";

let caches: string;
beforeEach(() => {
  caches = mkdtempSync(join(tmpdir(), "truewire-compiled-"));
});
afterEach(() => rmSync(caches, { recursive: true, force: true }));

/** Loads the code of a server, which then finds nothing to serve. Returns what it said, with its stack. */
async function load(place = caches): Promise<string> {
  const env = { XDG_CACHE_HOME: place, TRUEWIRE_DEBUG: "1" };
  const { code, stderr } = await runTruewire(["serve", "./missing.gguf"], { env });
  expect([code, stderr]).toEqual([1, expect.stringContaining("./missing.gguf does not exist.")]);
  return stderr;
}

/** Loads it, too. Returns the file with its compiled code, and whether this process has written it. */
async function stored(): Promise<{ readonly file: string; readonly isWritten: boolean }> {
  const folder = join(caches, "truewire", "compiled");
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), 0, 0);
  await load();
  const names = readdirSync(folder).filter((name) => name.startsWith("server-"));
  expect(names).toHaveLength(1);
  const file = join(folder, names[0] ?? "");
  return { file, isWritten: statSync(file).mtimeMs > 0 };
}

test("the code that the first start has compiled is used by the second one; damaged code is compiled again", async () => {
  const { file, isWritten } = await stored();
  expect(isWritten).toBe(true);
  expect(await stored()).toEqual({ file, isWritten: false });
  const whole = readFileSync(file);
  const flipped = Buffer.from(whole);
  flipped.fill(0xff, whole.length / 2, whole.length / 2 + 4096);
  // Of another source, by V8's own header, which begins after the checksum: a magic number, the version and a digest of the source.
  const other = Buffer.from(whole);
  other[4 + 8] = (other[4 + 8] ?? 0) ^ 1;
  other.writeUInt32LE(crc32(other.subarray(4)));
  for (const bytes of [flipped, other, whole.subarray(0, 3)]) {
    writeFileSync(file, bytes);
    expect(await stored()).toEqual({ file, isWritten: true });
    expect(readFileSync(file).length).toBeGreaterThan(1_000_000);
  }
});

test("the code of a version that was replaced is removed after a month", async () => {
  const folder = join(caches, "truewire", "compiled");
  mkdirSync(folder, { recursive: true });
  for (const name of ["server-0a1b2c3d.script.js.1", "other"]) {
    writeFileSync(join(folder, name), "");
    utimesSync(join(folder, name), 0, 0);
  }
  await load();
  const names = readdirSync(folder).filter((name) => name === "other" || name.includes(".script.js."));
  expect(names).toEqual(["other", expect.stringMatching(/^server-(?!0a1b2c3d)/)]);
});

test("where compiled code cannot be stored, a server starts without it; a stack has the places in the script", async () => {
  writeFileSync(join(caches, "truewire"), "not a folder");
  for (const place of [caches, join(caches, "missing")])
    expect(await load(place)).toMatch(/\n {4}at .*server-\w+\.script\.js:\d+:\d+/);
});
