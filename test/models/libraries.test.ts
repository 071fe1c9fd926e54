import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { installBuild as InstallBuild } from "../../src/engines/llama/libraries/install.ts";
import { libraryFolders } from "../../src/engines/llama/libraries/library-folders.ts";
import { NpmRegistry } from "../../src/engines/llama/libraries/npm-registry.ts";
import { until } from "../engine/local-engine.ts";
import { runTruewire } from "../support/serve.ts";

const built = resolve(process.env["TRUEWIRE_DIST"] ?? "dist", "engines/llama/libraries/install.js");
const { installBuild } = (await import(pathToFileURL(built).href)) as { readonly installBuild: typeof InstallBuild };

const [installed] = libraryFolders(false);
const hasTar = process.platform !== "win32" && installed !== undefined;
if (!hasTar) console.log("skipped: no build of llama.cpp is installed here, or no tar that packs it");

/** A registry with one package, which breaks off its archive after `breakAt` bytes. */
describe.skipIf(!hasTar)("truewire libraries install", () => {
  const name = "made-up";
  const build = { backend: "cpu", packages: [name] } as const;
  let folder: string;
  let server: Server;
  let url: string;
  let whole: Buffer;
  let archive: Buffer;
  let requests: Pick<IncomingMessage, "url" | "headers">[] = [];
  let breakAt: number | undefined;
  let breakOff: () => void = () => {};
  let integrity: string;
  const hashOf = (bytes: Buffer): string => `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const target = (): string => join(folder, "data/truewire/libraries/3.22.1", name);
  const data = process.env["XDG_DATA_HOME"];

  /** Packs files as npm packs a package of node-llama-cpp. */
  function pack(fill: (bins: string) => void): Buffer {
    const bins = join(folder, "package/bins", name);
    rmSync(join(folder, "package"), { recursive: true, force: true });
    mkdirSync(bins, { recursive: true });
    fill(bins);
    execFileSync("tar", ["-czf", "package.tgz", "package"], { cwd: folder });
    return readFileSync(join(folder, "package.tgz"));
  }

  function copyLibraries(bins: string): void {
    const { folder: source = "" } = installed ?? {};
    for (const file of readdirSync(source))
      if (/^lib(llama|ggml)(-base|-cpu-x64|-cpu-armv8\.0_1)?(\.v[\d.]+)?\.(so|dylib)$/.test(file))
        cpSync(join(source, file), join(bins, file));
  }

  function install(options: { readonly userConfig?: string } = {}): ReturnType<typeof InstallBuild> {
    const registry = new NpmRegistry({ npm_config_registry: url }, options.userConfig ?? "");
    return installBuild(build, { registry, onProgress: () => {} }).finally(() => registry.close());
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-"));
    whole = pack(copyLibraries);
    process.env["XDG_DATA_HOME"] = join(folder, "data");
    server = createServer((request, response) => {
      requests.push({ url: request.url, headers: request.headers });
      if (!request.url?.endsWith(".tgz")) {
        const tarball = `https://public.example/@node-llama-cpp/${name}/-/${name}-3.22.1.tgz`;
        return void response.end(JSON.stringify({ dist: { tarball, integrity } }));
      }
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
      response.writeHead(from > 0 ? 206 : 200, { "content-length": archive.length - from });
      const end = breakAt;
      if (end === undefined) return void response.end(archive.subarray(from));
      response.write(archive.subarray(from, end));
      breakOff = () => response.destroy();
    }).listen(0, "127.0.0.1");
    await new Promise((listening) => server.once("listening", listening));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mirror/`;
  });
  afterAll(() => {
    if (data === undefined) delete process.env["XDG_DATA_HOME"];
    else process.env["XDG_DATA_HOME"] = data;
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    requests = [];
    breakAt = undefined;
    rmSync(join(folder, "data"), { recursive: true, force: true });
    archive = whole;
    integrity = hashOf(archive);
  });

  test("downloads from the configured registry, resumes what broke off, and leaves the libraries only", async () => {
    breakAt = 100_000;
    const part = `${target()}.tgz.part`;
    const attempt = install();
    attempt.catch(() => {});
    await until(() => existsSync(part) && statSync(part).size > 0);
    breakOff();
    await expect(attempt).rejects.toThrow("the same command resumes it");
    breakAt = undefined;
    requests = [];
    expect(await install()).toEqual({ folder: target(), bytes: archive.length });
    expect(requests.map(({ url: path, headers }) => [path, headers.range])).toEqual([
      [`/mirror/@node-llama-cpp%2f${name}/3.22.1`, undefined],
      [`/mirror/@node-llama-cpp/${name}/-/${name}-3.22.1.tgz`, expect.stringMatching(/^bytes=[1-9]\d*-$/)],
    ]);
    expect(readdirSync(join(target(), ".."))).toEqual([name]);
    expect(readdirSync(target())).toContain(
      readdirSync(installed?.folder ?? "").find((file) => file.startsWith("libllama.v")),
    );
  });

  test("an archive with another hash is refused and deleted", async () => {
    integrity = hashOf(Buffer.from("another"));
    await expect(install()).rejects.toThrow(`its hash is not ${integrity}`);
    expect(readdirSync(join(target(), ".."))).toEqual([]);
  });

  test("libraries that do not load are not installed", async () => {
    archive = pack((bins) => writeFileSync(join(bins, "libllama.so"), "I am a text."));
    integrity = hashOf(archive);
    await expect(install()).rejects.toThrow(/^The downloaded libraries cannot be used: .*holds no library/);
    expect(existsSync(target())).toBe(false);
  });

  test("the user's .npmrc: a registry for the scope, and its key, which no other server gets", async () => {
    const host = url.replace(/^http:/, "");
    const config = `; a comment\n@node-llama-cpp:registry=${url}\n${host}:_authToken=\${NPM_TOKEN}\nregistry=http://127.0.0.1:1/\n`;
    const registry = new NpmRegistry({ NPM_TOKEN: "secret" }, config);
    expect((await registry.find(name, "3.22.1")).integrity).toBe(integrity);
    const other = new NpmRegistry(
      { NPM_TOKEN: "secret", npm_config_registry: url.replace("mirror", "other") },
      `${host}:_authToken=\${NPM_TOKEN}`,
    );
    await other.find(name, "3.22.1");
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer secret", undefined]);
    await registry.close();
    await other.close();
  });

  test("libraries --json: which builds are here, which fits, and why", async () => {
    const env = { XDG_DATA_HOME: join(folder, "data") };
    const { stdout } = await runTruewire(["libraries", "--json"], { env });
    const { builds } = JSON.parse(stdout) as { builds: Record<string, unknown>[] };
    expect(builds.find(({ name: one }) => one === "cpu")).toEqual({
      name: "cpu",
      installed: installed?.folder,
      used: true,
      fits: true,
      why: "any processor",
    });
    const { code, stderr } = await runTruewire(["libraries", "install", "abacus"], { env });
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("There is no build abacus for this platform: expected one of"),
    ]);
  });
});
