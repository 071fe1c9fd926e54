import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isNightly } from "../support/runs.ts";
import { chat } from "../support/transports.ts";
import { freePort } from "../support/redis-server.ts";

const run = promisify(execFile);

const missing =
  process.platform === "win32"
    ? "the test is for a POSIX shell"
    : spawnSync("tar", ["--version"]).error
      ? "there is no tar to unpack the archive"
      : (process.config.variables as { node_shared?: boolean }).node_shared === true
        ? "this Node is not one file"
        : isNightly
          ? undefined
          : "the archive is made at night: to compress Node takes 20 s of CPU time";
if (missing !== undefined) console.log(`skipped: ${missing}`);

/** The archive of `npm run bundle`, unpacked where there is no Node, npm or node_modules. */
describe.skipIf(missing !== undefined)("the archive with Node inside", () => {
  let folder: string;
  let unpacked: string;
  let report: string;
  /** Without a PATH that has any program. */
  let env: Record<string, string>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "truewire-bundle-test-"));
    report = (await run(process.execPath, ["scripts/bundle.mjs", folder])).stdout;
    const [archive = ""] = await readdir(folder);
    await run("tar", ["-xzf", archive], { cwd: folder });
    unpacked = join(folder, archive.replace(/\.tgz$/, ""));
    const [home, path] = [join(folder, "home"), join(folder, "empty")];
    mkdirSync(home);
    mkdirSync(path);
    env = { HOME: home, PATH: path };
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("prints its path, size and hash", () => {
    const [archive = "", size = "", hash = ""] = report.split("\n");
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect(archive).toBe(join(folder, `truewire-${version}-${process.platform}-${process.arch}.tgz`));
    expect(size).toMatch(/^\d+\.\d MB \(unpacked \d+\.\d MB\): Node \d+\.\d+\.\d+, \d+ packages, \d+ files$/);
    expect(hash).toMatch(/^sha256 [0-9a-f]{64}$/);
  });

  test("has no packages of development, declarations or libraries of other platforms", async () => {
    const packages = await readdir(join(unpacked, "lib/node_modules"));
    expect(packages).toEqual(expect.arrayContaining(["koffi", "node-llama-cpp", "undici"]));
    for (const name of ["vitest", "typescript", "openai", "preact"]) expect(packages).not.toContain(name);
    const variants = await readdir(join(unpacked, "lib/node_modules/@node-llama-cpp"));
    expect(variants.filter((variant) => !variant.includes(process.arch))).toEqual([]);
    expect(existsSync(join(unpacked, "lib/dist/index.d.ts"))).toBe(true);
    expect(existsSync(join(unpacked, "lib/node_modules/undici/types/index.d.ts"))).toBe(false);
  });

  test("runs by a link, without Node on the PATH", async () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    const tools = join(folder, "tools");
    mkdirSync(tools);
    symlinkSync("/bin/ls", join(tools, "ls"));
    symlinkSync("../" + unpacked.slice(folder.length + 1) + "/truewire", join(tools, "tw"));
    await expect(run("node", ["--version"], { env })).rejects.toThrow("ENOENT");
    expect((await run(join(tools, "tw"), ["--version"], { env: { ...env, PATH: tools } })).stdout).toBe(`${version}\n`);
  });

  test("serves the demo model without Node on the PATH", async () => {
    const args = ["serve", "--port", String(await freePort()), "--threads", "1", "--gpu", "off", "--no-discovery"];
    const child = spawn(join(unpacked, "truewire"), args, { env, cwd: env["HOME"] });
    let errors = "";
    child.stderr.on("data", (text) => (errors += String(text)));
    try {
      let url: string | undefined;
      for await (const line of createInterface(child.stdout)) {
        url ??= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
        if (line.includes("curl")) break;
      }
      const answer = await fetch(
        `${url}/v1/chat/completions`,
        chat("What is the capital of France?", { model: "demo" }),
      );
      expect(answer.status, errors).toBe(200);
      expect(await answer.json()).toMatchObject({
        choices: [{ message: { content: expect.stringContaining("Paris") as string } }],
      });
    } finally {
      child.kill("SIGTERM");
      if (child.exitCode === null) await once(child, "exit");
    }
    expect(child.exitCode, errors).toBe(0);
  });
});
