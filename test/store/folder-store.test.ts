import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFolderStore } from "../../src/serve/kv/folder-store.ts";

const roomy = { maxCount: 1e6, maxBytes: 1e10, maxAgeMs: 1e9 };

describe("a store in a folder", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "truewire-store-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test("what was set is there after a restart, and what was deleted is not", async () => {
    const store = await openFolderStore(join(folder, "new/folder"), roomy);
    await store.set("a", "é 1");
    await store.set("a", "é 2");
    await store.set("b", "3");
    expect(await store.delete("b")).toBe(true);
    expect(await store.delete("b")).toBe(false);
    const again = await openFolderStore(join(folder, "new/folder"), roomy);
    expect(await again.get("a")).toBe("é 2");
    expect(await again.get("b")).toBeUndefined();
  });

  test("additions of two processes follow each other, and count", async () => {
    const [one, other] = [await openFolderStore(folder, roomy), await openFolderStore(folder, roomy)];
    expect(await one.append("a", "x")).toBe(false);
    await one.set("a", "é");
    await Promise.all(Array.from({ length: 40 }, (_, at) => (at % 2 ? one : other).append("a", `<${at}>`)));
    const { text = "", size } = (await other.readFrom("a", 2)) ?? {};
    expect(text.match(/<\d+>/g)).toHaveLength(40);
    expect(size).toBe(2 + text.length);
    expect(await one.get("a")).toBe(`é${text}`);
    await one.delete("a");
    expect([await other.append("a", "x"), await other.readFrom("a", 0)]).toEqual([false, undefined]);
    const small = await openFolderStore(folder, { ...roomy, maxBytes: 6 });
    await small.set("b", "12");
    await small.set("c", "12");
    await small.append("c", "345");
    await expect.poll(() => small.get("b")).toBeUndefined();
    expect(await small.get("c")).toBe("12345");
  });

  test("a key is no path", async () => {
    const store = await openFolderStore(folder, roomy);
    await store.set("../../outside", "x");
    expect(await store.get("../../outside")).toBe("x");
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^[0-9a-f]{16}-[0-9a-f]{64}$/)]);
  });

  test("a file that an earlier version named by its key alone is found, replaced and deleted", async () => {
    const name = createHash("sha256").update("alice resp_1").digest("hex");
    await writeFile(join(folder, name), "1");
    const store = await openFolderStore(folder, roomy);
    expect(await store.get("alice resp_1")).toBe("1");
    await store.set("alice resp_1", "2");
    expect(await store.get("alice resp_1")).toBe("2");
    expect(await readdir(folder)).toEqual([name]);
    expect(await store.delete("alice resp_1")).toBe(true);
    expect(await readdir(folder)).toEqual([]);
  });

  test("one owner's texts make way for each other before those of others do, after a restart, too", async () => {
    const limits = { ...roomy, maxCount: 4 };
    const store = await openFolderStore(folder, limits);
    await store.set("alice first", "x");
    for (let at = 0; at < 20; at++) await store.set(`bob ${at}`, "x");
    const again = await openFolderStore(folder, limits);
    for (let at = 20; at < 40; at++) await again.set(`bob ${at}`, "x");
    expect(await again.get("alice first")).toBe("x");
    await expect.poll(() => readdir(folder)).toHaveLength(4);
  });

  test("it keeps to its limits, after a restart, too", async () => {
    const limits = { ...roomy, maxCount: 3 };
    const store = await openFolderStore(folder, limits);
    for (const key of ["a", "b", "c", "d"]) await store.set(key, key);
    await expect.poll(() => readdir(folder)).toHaveLength(3);
    expect(await store.get("a")).toBeUndefined();
    const again = await openFolderStore(folder, limits);
    await again.set("e", "e");
    await expect.poll(() => readdir(folder)).toHaveLength(3);
    const small = await openFolderStore(folder, { ...limits, maxBytes: 10 });
    await small.set("f", "larger than ten bytes");
    await expect.poll(() => readdir(folder)).toHaveLength(3);
    expect(await small.get("f")).toBeUndefined();
    const late = await openFolderStore(folder, { ...roomy, maxAgeMs: 1 });
    expect(await late.get("e")).toBeUndefined();
  });

  test("what another process has written is found, as long as it is not too old", async () => {
    const one = await openFolderStore(folder, { ...roomy, maxAgeMs: 60_000 });
    const other = await openFolderStore(folder, roomy);
    await other.set("a", "1");
    expect(await one.get("a")).toBe("1");
    const [name = ""] = await readdir(folder);
    await utimes(join(folder, name), 0, 0);
    expect(await one.get("a")).toBeUndefined();
  });

  test("what a crash left unfinished is removed, what is being written is not", async () => {
    await writeFile(join(folder, "left.tmp"), "half");
    await utimes(join(folder, "left.tmp"), 0, 0);
    await writeFile(join(folder, "written.tmp"), "half");
    await writeFile(join(folder, "README"), "somebody's own");
    await openFolderStore(folder, roomy);
    expect((await readdir(folder)).toSorted()).toEqual(["README", "written.tmp"]);
  });

  test("a process that is killed in the middle of 1,000 writes leaves every text whole, and loses none that it had finished", async () => {
    for (const killAfter of [5, 300, 1000]) {
      const { finished } = await writeUntilKilled(folder, killAfter);
      expect(finished.size).toBeGreaterThan(0);
      const store = await openFolderStore(folder, roomy);
      for (const [key, round] of finished) {
        const text = await store.get(`key ${key}`);
        expect(roundOf(text ?? "")).toBeGreaterThanOrEqual(round);
      }
    }
  });
});

/** Writes 50 keys at once, over and over: texts of 10 to 200 kB that tell their round at both ends. Prints each write that is done. */
const writer = `
const { openFolderStore } = await import(process.argv[1]);
const store = await openFolderStore(process.argv[2], ${JSON.stringify(roomy)});
for (let round = 0; ; round++) {
  await Promise.all(Array.from({ length: 50 }, async (_, key) => {
    const filler = "abcdefgh"[round % 8].repeat(10_000 + ((round * 7919 + key * 104_729) % 190_000));
    await store.set("key " + key, round + " " + filler + " " + round);
    process.stdout.write(key + " " + round + "\\n");
  }));
}`;

/** The last round of each key whose write was done when the process was killed, after so many writes. */
async function writeUntilKilled(folder: string, killAfter: number): Promise<{ finished: ReadonlyMap<number, number> }> {
  const module = resolve("dist/serve/kv/folder-store.js");
  const child = spawn(process.execPath, ["--input-type=module", "-e", writer, module, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const finished = new Map<number, number>();
  let writes = 0;
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [key = 0, round = 0] = line.split(" ").map(Number);
      finished.set(key, round);
      if (++writes === killAfter) child.kill("SIGKILL");
    }
  });
  await new Promise((done) => child.once("close", done));
  expect(child.signalCode).toBe("SIGKILL");
  return { finished };
}

/** Fails for a text that is not whole. */
function roundOf(text: string): number {
  const [first = "", filler = "", last = ""] = text.split(" ");
  expect(last).toBe(first);
  expect(filler).toBe(filler.charAt(0).repeat(filler.length));
  return Number(first);
}
