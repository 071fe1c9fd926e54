import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { KeyEntry } from "../../src/serve/config/keys-schema.ts";
import { until } from "../support/scripted-engine.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import { keyOf, withKey } from "./support.ts";

describe("truewire keys new", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "truewire-keys-"));
    await writeFile(join(folder, "hello.js"), "export default () => 'Hello';\n");
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function made(name: string): Promise<{ key: string; entries: KeyEntry[] }> {
    const { code, stdout, stderr } = await runTruewire(["keys", "new", "--name", name]);
    expect(code).toBe(0);
    return { key: stdout.trim(), entries: parse(stderr.slice(stderr.indexOf("- name"))) as KeyEntry[] };
  }

  test("prints a key of 256 bits on stdout, another one each time, and what the server is to know of it on stderr", async () => {
    const [one, other] = [await made("alice"), await made("alice")];
    expect(one.key).toMatch(/^tw-[\w-]{43}$/);
    expect(other.key).not.toBe(one.key);
    expect(one.entries).toEqual([keyOf("alice", {}, one.key).entry]);
  });

  test("--json: the key and its entry as one object, for scripts", async () => {
    const { stdout, stderr } = await runTruewire(["keys", "new", "--name", "alice", "--json"]);
    const { key, entry } = JSON.parse(stdout) as { key: string; entry: KeyEntry };
    expect([entry, stderr]).toEqual([keyOf("alice", {}, key).entry, ""]);
  });

  test("a name must be one", async () => {
    expect(await runTruewire(["keys", "new", "--name", ""])).toMatchObject({ code: 1, stdout: "" });
    expect((await runTruewire(["keys", "new"])).code).not.toBe(0);
  });

  test("a server that knows keys by a file alone reads it again on SIGHUP", async () => {
    const file = join(folder, "keys.yaml");
    const [old, young] = [await made("alice"), await made("alice")];
    await writeFile(file, JSON.stringify(old.entries));
    const server = await startTruewire([join(folder, "hello.js"), "--keys-file", file]);
    const status = async (key: string): Promise<number> =>
      (await fetch(`${server.url}/v1/models`, withKey(key))).status;
    expect([await status(old.key), await status(young.key)]).toEqual([200, 401]);
    expect(server.stdout()).toContain('-H "Authorization: Bearer $OPENAI_API_KEY"');
    await writeFile(file, JSON.stringify(young.entries));
    server.process.kill("SIGHUP");
    await until(async () => (await status(young.key)) === 200, "the file is read again");
    expect(await status(old.key)).toBe(401);
    expect(await server.stop()).toBe(0);
    const said = server.stdout() + server.stderr();
    expect(said).toContain('"key":"alice"');
    expect(said).not.toContain(old.key);
    expect(said).not.toContain(young.key);
    expect(await readFile(file, "utf8")).not.toContain(young.key);
  });
});
