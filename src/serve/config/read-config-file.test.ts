import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TruewireConfig } from "./schema.ts";
import { readConfigFile } from "./read-config-file.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "truewire-config-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(text: string, environment: Record<string, string> = {}): Promise<TruewireConfig> {
  const file = join(folder, "truewire.yaml");
  await writeFile(file, text);
  return readConfigFile(file, environment);
}

/** What reading the text says, without the folder. */
async function complaint(text: string, environment: Record<string, string> = {}): Promise<string> {
  try {
    await read(text, environment);
  } catch (error) {
    return (error as Error).message.replaceAll(`${folder}/`, "");
  }
  throw new Error("it was read");
}

describe("readConfigFile", () => {
  test("fills in the environment", async () => {
    const config = await read('apiKey: ["${A}", "x-${B}", "${C:-none}", "$${D}"]\nport: ${PORT}\n', {
      A: "a",
      B: "b",
      PORT: "81",
    });
    expect(config).toMatchObject({ apiKey: ["a", "x-b", "none", "${D}"], port: "81" });
  });

  test("takes paths from where the file lies", async () => {
    const config = await read(
      [
        "logStream: events.log",
        "store: { at: kept, maxAge: 7d }",
        "models:",
        "  - name=models/a.gguf",
        "  - ./p.ts",
        "  - hf:owner/repo:Q4_K_M",
        "  - { kind: local, path: /abs/b.gguf, chatTemplate: t.jinja }",
        "  - https://host/v1",
      ].join("\n"),
    );
    expect(config.logStream).toBe(join(folder, "events.log"));
    expect(config.store).toEqual({ at: join(folder, "kept"), maxAge: "7d" });
    expect((await read("store: kept")).store).toBe(join(folder, "kept"));
    expect((await read("store: memory")).store).toBe("memory");
    expect((await read("store: redis://localhost")).store).toBe("redis://localhost");
    expect(config.models).toEqual([
      { kind: "local", path: join(folder, "models/a.gguf"), name: "name" },
      { kind: "program", program: join(folder, "p.ts") },
      { kind: "local", path: "hf:owner/repo:Q4_K_M" },
      { kind: "local", path: "/abs/b.gguf", chatTemplate: join(folder, "t.jinja") },
      { kind: "upstream", url: "https://host/v1" },
    ]);
  });

  test("an empty file is a configuration of defaults", async () => {
    expect(await read("# nothing yet\n")).toEqual({});
  });

  test.each([
    ["port: x\n", "truewire.yaml:1: port: expected a whole number from 0 to 65535"],
    ["# a comment\nhost: h\nprot: 1\n", "truewire.yaml:3: prot: there is no such setting; did you mean port?"],
    [
      "models:\n  - kind: local\n    path: x\n    slots: many\n",
      "truewire.yaml:4: models[0].slots: expected a whole number, 1 or more",
    ],
    [
      "models:\n  - a.gguf\n  - kind: local\n    slots: 2\n",
      "truewire.yaml:3: models[1].path: is missing; expected a GGUF file, such as models/llama.gguf, or hf:owner/repo",
    ],
    [
      "models:\n  - kind: upstream\n    url: http://localhost:1/v1\n    learn: true\n",
      /^truewire\.yaml:4: models\[0\]\.learn: was removed: .*truewire doctor URL --write FILE/,
    ],
    ["port: 1\nhost: [h\n", /^truewire\.yaml:\d: /],
    ["port: 1\nport: 2\n", /^truewire\.yaml:2: Map keys must be unique/],
    ["- a\n- b\n", "truewire.yaml:1: expected a mapping such as { port: 8080, models: [model.gguf] }"],
    ["host: h\napiKey: ${NOT_SET}\n", "truewire.yaml:2: the environment variable NOT_SET is not set"],
  ] as [string, string | RegExp][])("%j is told with its line", async (text, message) => {
    const told = await complaint(text);
    if (typeof message === "string") expect(told).toBe(message);
    else expect(told).toMatch(message);
  });

  test("every problem has its line", async () => {
    expect(await complaint("port: x\nmodels:\n  - kind: local\nhold: y\n")).toMatch(
      /^truewire\.yaml:1: port: .*\ntruewire\.yaml:4: hold: .*\ntruewire\.yaml:3: models\[0\]\.path: .*$/,
    );
  });
});
