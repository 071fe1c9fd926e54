import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installPacked } from "./install-packed.ts";

const run = promisify(execFile);

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

describe("the types of the packed tarball", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "truewire-types-"));
    await installPacked(folder);
    await cp("node_modules/@types/node", join(folder, "node_modules/@types/node"), { recursive: true });
    await cp("node_modules/undici-types", join(folder, "node_modules/undici-types"), { recursive: true });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

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

  test("compile with the oldest TypeScript that is supported, 5.6", async () => {
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
