import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { said } from "../support/fixture-server.ts";
import { installedAbove } from "../support/installed-above.ts";
import { isNightly } from "../support/runs.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";
import { installPacked } from "./install-packed.ts";

const run = promisify(execFile);

const isAbove = installedAbove("node-llama-cpp");

/** Imports each entry of the package with all that it exports. */
const everything = `
import * as truewire from "truewire";
import * as server from "truewire/server";
import * as fetch from "truewire/fetch";
import * as rules from "truewire/rules";
import packageJson from "truewire/package.json" with { type: "json" };
import schema from "truewire/truewire.schema.json" with { type: "json" };
export const all = [truewire, server, fetch, rules, packageJson, schema];
`;
/** The entries that need nothing of Node. */
const portable = `
import * as truewire from "truewire";
import * as fetch from "truewire/fetch";
import * as rules from "truewire/rules";
export const all = [truewire, fetch, rules];
`;

const strict = {
  target: "es2023",
  lib: ["es2023"],
  strict: true,
  noEmit: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noPropertyAccessFromIndexSignature: true,
  skipLibCheck: false,
  resolveJsonModule: true,
};
const nodenext = { ...strict, module: "nodenext", types: ["node"] };

// What is published is what is tested: the packed tarball, installed into an empty folder, once for all tests.
let folder: string;
let packed: readonly string[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "truewire-pack-"));
  packed = await installPacked(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the packed tarball", () => {
  let main: string;
  beforeAll(() => {
    main = join(folder, "node_modules/truewire/dist/cli/main.js");
  });

  test("holds what is needed and nothing else", () => {
    expect(packed).toEqual(
      expect.arrayContaining([
        "CHANGELOG.md",
        "README.md",
        "LICENSE",
        "package.json",
        "truewire.schema.json",
        "dist/chunks/LICENSES.txt",
        "dist/cli/main.js",
        "dist/index.d.ts",
        "dist/page/index.html",
        "dist/page/page.js",
        "dist/sbom.cdx.json",
      ]),
    );
    const stray = packed.filter(
      (path) =>
        !/^(dist\/.*(?<!\.test)\.(js|d\.ts)|dist\/chunks\/LICENSES\.txt|dist\/sbom\.cdx\.json|dist\/page\/[\w-]+\.(html|css|svg|json)|models\/demo\/(demo(\.mmproj)?\.gguf|README\.md)|(README|CHANGELOG)\.md|LICENSE|package\.json|truewire\.schema\.json)$/.test(
          path,
        ),
    );
    expect(stray).toEqual([]);
    // The other modules of the command are in its bundle.
    expect(packed.filter((path) => path.startsWith("dist/cli/"))).toEqual([
      "dist/cli/main.js",
      "dist/cli/serve-action.js",
    ]);
  });

  test("its bill of materials names every installed package with its version, hash and licence", async () => {
    const bill = JSON.parse(await readFile(join(folder, "node_modules/truewire/dist/sbom.cdx.json"), "utf8")) as {
      bomFormat: string;
      components: { name: string; version: string; hashes: unknown[]; licenses: unknown[] }[];
    };
    expect(bill.bomFormat).toBe("CycloneDX");
    const listed = new Set(bill.components.map(({ name, version }) => `${name}@${version}`));
    for (const { hashes, licenses } of bill.components)
      expect([hashes.length, licenses.length].every((count) => count > 0)).toBe(true);
    // Whoever ships Truewire owes their texts, and nothing else.
    const licences = new Set(bill.components.flatMap(({ licenses }) => licenses.map((one) => JSON.stringify(one))));
    const known = /^\{"(?:expression":"\(?|license":\{"id":")(0BSD|Apache-2\.0|BSD-[23]-Clause|ISC|MIT|PSF-2\.0)\b/;
    expect([...licences].filter((one) => !known.test(one))).toEqual([]);
    const lock = JSON.parse(await readFile(join(folder, "node_modules/.package-lock.json"), "utf8")) as {
      packages: Readonly<Record<string, { version: string }>>;
    };
    const installed = Object.keys(lock.packages).map((path) => path.slice(path.lastIndexOf("node_modules/") + 13));
    expect(installed.length).toBeGreaterThan(20);
    const names = new Set(bill.components.map(({ name }) => name));
    expect(installed.filter((name) => name !== "truewire" && !names.has(name))).toEqual([]);
    const { dependencies } = JSON.parse(await readFile("package.json", "utf8")) as {
      dependencies: Readonly<Record<string, string>>;
    };
    for (const [name, version] of Object.entries(dependencies)) expect(listed).toContain(`${name}@${version}`);
    expect([...listed].filter((name) => /^(vitest|typescript|openai)@/.test(name))).toEqual([]);
  });

  test("its command serves a program", async () => {
    await writeFile(
      join(folder, "hello.ts"),
      "export default ({ messages }: { messages: unknown[] }) => `You said ${messages.length} thing.`;\n",
    );
    const bin = join(folder, "node_modules/.bin/truewire");
    expect(existsSync(bin)).toBe(true);
    expect((await run(bin, ["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const server = await startTruewire(["./hello.ts"], { main, cwd: folder });
    const answer = await fetch(`${server.url}/v1/chat/completions`, chat("x", { model: "hello" }));
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "You said 1 thing." } }] });
    expect(await server.stop()).toBe(0);
  });

  test("as a library: createServer, createHandler and their types", async () => {
    await writeFile(
      join(folder, "library.mjs"),
      `import { createHandler, createServer } from "truewire/server";
       const models = [{ kind: "program", name: "up", program: ({ messages }) => messages.at(-1).content.toUpperCase() }];
       const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "up", messages: [{ role: "user", content: "hi" }] }) };
       const server = await createServer({ port: 0, logLevel: "silent", models });
       const over = await (await fetch(server.url + "/v1/chat/completions", request)).json();
       await server.close();
       const handler = createHandler({ models });
       const within = await (await handler.fetch(new Request("http://x/v1/chat/completions", request))).json();
       await handler.close();
       console.log(over.choices[0].message.content, within.choices[0].message.content);`,
    );
    const { stdout } = await run(process.execPath, ["library.mjs"], { cwd: folder });
    expect(stdout).toBe("HI HI\n");
  });

  // Without `sideEffects: false`, all of the package was in the bundle: 456 kB. With `import { z } from "zod"`, all of zod's locales were:
  // 350 kB.
  test.each([
    ["readChatStream", 64_000],
    ["writeChatStream", 140_000],
    ["readResponsesStream", 170_000],
    ["writeResponsesStream", 200_000],
    ["readMessagesStream", 165_000],
    ["writeMessagesStream", 150_000],
  ])("a bundle of %s is small and needs nothing of Node", async (name, most) => {
    await writeFile(join(folder, "one.mjs"), `import { ${name} } from "truewire"; console.log(typeof ${name});`);
    const build = await rolldown({ input: join(folder, "one.mjs"), platform: "browser" });
    const { output } = await build.generate({ format: "esm", minify: true });
    await build.close();
    expect(output.map(({ fileName }) => fileName)).toHaveLength(1);
    const [{ code, imports }] = output;
    expect(imports).toEqual([]);
    expect(code.length).toBeLessThan(most);
  });

  test("the rules of the checker by themselves", async () => {
    await writeFile(
      join(folder, "rules.mjs"),
      `import { everyRule, judgeCapture } from "truewire/rules";
       const { findings } = judgeCapture("capture", "data: {}\\n\\n");
       console.log(everyRule.length > 80, findings.some(({ rule }) => rule === "end/done"));`,
    );
    const { stdout } = await run(process.execPath, ["rules.mjs"], { cwd: folder });
    expect(stdout).toBe("true true\n");
  });

  test.skipIf(isAbove)(
    "without llama.cpp's libraries: the command that installs them; upstreams are served",
    async () => {
      const model = join(folder, "model.gguf");
      writeProgrammedModel(model);
      const env = { XDG_DATA_HOME: join(folder, "data") };
      for (const args of [[model], ["--no-discovery"]]) {
        const { code, stderr } = await runTruewire(["serve", ...args, "--port", "0"], { main, cwd: folder, env });
        expect(code).toBe(1);
        expect(stderr).toMatch(
          /^truewire: Local models need llama\.cpp's libraries, .*: truewire libraries install\n$/,
        );
      }
    },
  );

  test("a local model with node-llama-cpp beside it is served", async () => {
    const own = resolve("node_modules");
    await mkdir(join(folder, "node_modules/@node-llama-cpp"), { recursive: true });
    await symlink(join(own, "node-llama-cpp"), join(folder, "node_modules/node-llama-cpp"));
    const server = await startTruewire(["model.gguf", "--threads", "1", "--gpu", "off"], { main, cwd: folder });
    const answer = await fetch(`${server.url}/v1/chat/completions`, chat("#plain", { model: "model" }));
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: said.plain } }] });
    expect(await server.stop()).toBe(0);
  });
});

describe("the types of the packed tarball", () => {
  beforeAll(async () => {
    await cp("node_modules/@types/node", join(folder, "node_modules/@types/node"), { recursive: true });
    await cp("node_modules/undici-types", join(folder, "node_modules/undici-types"), { recursive: true });
  });

  /** Runs tsc over one file. Returns its errors, and the files that it read. */
  async function compile(
    text: string,
    compilerOptions: object,
    tsc: string = resolve("node_modules/typescript/bin/tsc"),
  ): Promise<{ errors: string[]; files: string[] }> {
    await writeFile(join(folder, "sample.ts"), text);
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["sample.ts"] }));
    const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
    const { stdout } = await run(process.execPath, [tsc, "--listFiles"], options).catch(
      (error: unknown) => error as { stdout: string },
    );
    const lines = stdout.split("\n");
    return { errors: lines.filter((line) => line.includes("error TS")), files: lines };
  }

  // The declarations of createServer led to those of llama.cpp's library, which such a project does not have.
  test.each([
    ["nodenext", everything, nodenext],
    ["bundler", everything, { ...strict, module: "esnext", moduleResolution: "bundler", types: ["node"] }],
    [
      "a browser's project",
      portable,
      {
        ...strict,
        module: "esnext",
        moduleResolution: "bundler",
        lib: ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
        types: [],
      },
    ],
  ])("compile without skipLibCheck: %s", async (_, text, compilerOptions) => {
    const { errors, files } = await compile(text, compilerOptions);
    expect(errors).toEqual([]);
    expect(files.some((file) => file.endsWith("/truewire/dist/index.d.ts"))).toBe(true);
    const dragged = files.filter((file) => /node_modules\/(zod|undici|@opentelemetry|prom-client)\//.test(file));
    expect(dragged).toEqual([]);
  });

  if (!isNightly) console.log("skipped: TypeScript 5.6 reads the types at night only (TRUEWIRE_RUNS)");
  test.runIf(isNightly)("compile with the oldest TypeScript that is supported, 5.6", async () => {
    // The one that @arethetypeswrong/cli brings.
    const { resolve: find } = createRequire(resolve("node_modules/@arethetypeswrong/core/package.json"));
    const { version } = JSON.parse(await readFile(find("typescript/package.json"), "utf8")) as { version: string };
    expect(version).toMatch(/^5\.6\./);
    const { errors, files } = await compile(everything, nodenext, find("typescript/bin/tsc"));
    expect(errors).toEqual([]);
    expect(files.some((file) => file.endsWith("/truewire/dist/index.d.ts"))).toBe(true);
  });

  test("of a program's messages, tools and options", async () => {
    const text = await readFile("test/packaging/program-types.ts", "utf8");
    expect((await compile(text, nodenext)).errors).toEqual([]);
    // A sample whose wrong lines are not errors would prove nothing.
    const unmarked = text.replaceAll(/^ *\/\/ @ts-expect-error.*\n/gm, "");
    const marks = text.match(/@ts-expect-error/g)?.length ?? 0;
    expect(marks).toBeGreaterThan(5);
    expect((await compile(unmarked, nodenext)).errors).toHaveLength(marks);
  });
});
