import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { ConfigError } from "./config-error.ts";
import type { TruewireConfig } from "./schema.ts";
import { configJsonSchema, parseConfig } from "./schema.ts";

describe("parseConfig", () => {
  test("fills in the defaults", () => {
    expect(parseConfig({})).toMatchObject({
      host: "127.0.0.1",
      port: 8080,
      apiKey: [],
      wire: "lean",
      hold: 10_000,
      keepAlive: 15_000,
      grace: 10_000,
      bodyLimit: 32 * 1024 * 1024,
      logLevel: "info",
      models: [],
    });
  });

  test.each([
    ["hold", 2, 2000],
    ["hold", "2", 2000],
    ["hold", "2.5s", 2500],
    ["hold", "500ms", 500],
    ["hold", "2 m", 120_000],
    ["grace", "9999h", 2 ** 31 - 1],
    ["bodyLimit", 1000, 1000],
    ["bodyLimit", "2KiB", 2048],
    ["bodyLimit", "1.5 MB", 1_500_000],
    ["port", "0", 0],
  ])("reads %s: %j", (name, given, value) => {
    expect(parseConfig({ [name]: given } as TruewireConfig)).toHaveProperty(name, value);
  });

  test("takes targets for models, numbers as texts, and one text for a list", () => {
    const { models, apiKey } = parseConfig({
      apiKey: "k",
      models: ["m=x.gguf", { kind: "local", path: "y.gguf", slots: "3", gpu: "off", tensorSplit: "3,1" }],
    });
    expect(apiKey).toEqual(["k"]);
    expect(models).toEqual([
      { kind: "local", path: "x.gguf", name: "m", aliases: [] },
      { kind: "local", path: "y.gguf", aliases: [], slots: 3, gpu: "off", tensorSplit: [3, 1] },
    ]);
  });

  test("a store is a place alone, or a place with limits", () => {
    const standard = { at: "memory", maxCount: 100_000, maxSize: 256 * 1024 ** 2, maxAge: 30 * 86_400_000 };
    expect(parseConfig({}).store).toEqual(standard);
    expect(parseConfig({ store: "redis://localhost" }).store).toEqual({ ...standard, at: "redis://localhost" });
    expect(parseConfig({ store: { at: "./kept", maxCount: "0", maxSize: "1GiB", maxAge: "45d" } }).store).toEqual({
      at: "./kept",
      maxCount: 0,
      maxSize: 1024 ** 3,
      maxAge: 45 * 86_400_000,
    });
  });

  test.each([
    [{ prot: 1 }, "prot: there is no such setting; did you mean port?"],
    [{ port: 65_536 }, "port: expected a whole number from 0 to 65535"],
    [{ port: "http" }, "port: expected a whole number from 0 to 65535"],
    [{ hold: "soon" }, "hold: expected a time such as 500ms, 10s or 2m"],
    [{ hold: -1 }, "hold: expected a time such as 500ms, 10s or 2m"],
    [{ bodyLimit: "big" }, "bodyLimit: expected a size such as 1048576, 512KiB or 32MiB"],
    [{ store: { color: 1 } }, "store.color: there is no such setting"],
    [
      { store: "mongodb://localhost" },
      "store: expected memory, a folder, or a URL such as redis://localhost:6379, or a mapping such as { at: ./responses, maxAge: 7d }",
    ],
    [{ store: { maxAge: "long" } }, "store.maxAge: expected an age such as 12h or 30d"],
    [{ apiKey: 3 }, "apiKey: expected a key, such as ${TRUEWIRE_KEY}, or a list of them"],
    [
      { models: [{ kind: "local" }] },
      "models[0].path: is missing; expected a GGUF file, such as models/llama.gguf, or hf:owner/repo",
    ],
    [
      { models: [{ kind: "local", path: "x", serviceTier: "gold" }] },
      "models[0].serviceTier: expected auto, default, flex, scale, priority or fast",
    ],
    // This one said "is missing" once, of any value of a wrong type.
    [{ models: [{ kind: "local", path: "x", logprobsKey: "no" }] }, "models[0].logprobsKey: expected true or false"],
    [{ models: [{ kind: "local", path: "x", slots: 0 }] }, "models[0].slots: expected a whole number, 1 or more"],
    [
      { models: [{ kind: "local", path: "x", tensorSplit: "3,a" }] },
      "models[0].tensorSplit: expected a list of numbers such as [3, 1], not all of them 0",
    ],
    [
      { models: [{ kind: "local", path: "x", tensorSplit: [0, 0] }] },
      "models[0].tensorSplit: expected a list of numbers such as [3, 1], not all of them 0",
    ],
    [
      { models: [{ kind: "local", path: "x", slot: 1 }] },
      "models[0].slot: there is no such setting; did you mean slots?",
    ],
    [{ models: [{ kind: "remote" }] }, "models[0].kind: expected local, upstream or program"],
    [{ models: [{ kind: "upstream", url: "ftp://x" }] }, "models[0].url: expected the base URL of a server"],
    [
      { models: [{ kind: "upstream", url: "https://x", timeouts: { idle: "x" } }] },
      "models[0].timeouts.idle: expected a time",
    ],
    [{ models: [{ kind: "program" }] }, "models[0].program: is missing; expected a file such as ./program.ts"],
    [{ models: 3 }, "models: expected a list such as [model.gguf, http://localhost:11434/v1]"],
    [{ models: [3] }, "models[0]: expected a target such as model.gguf or http://localhost:11434/v1, or a mapping"],
    [{ models: [{ path: "x" }] }, "models[0].kind: is missing; expected local, upstream or program"],
    [{ wire: "fat" }, "wire: expected lean or exact"],
    [{ apiKey: ["a", 3] }, "apiKey[1]: expected a key"],
    // It said "expected record, received array" once, of a list, which is a way to write it.
    [
      { models: [{ kind: "upstream", url: "https://x", models: "gpt-4o" }] },
      "models[0].models: expected a mapping such as { name: upstream-name } or a list of names",
    ],
    [
      { models: [{ kind: "upstream", url: "https://x", models: { a: 3 } }] },
      "models[0].models.a: expected the upstream's name",
    ],
    [
      { models: [{ kind: "upstream", url: "https://x", models: ["a", 3] }] },
      "models[0].models[1]: expected the name of a model",
    ],
    [
      { models: [{ kind: "local", path: "x", toolFormat: { kind: "plain" } }] },
      "models[0].toolFormat.id: is missing; expected a text",
    ],
  ])("refuses %j", (config, message) => {
    expect(() => parseConfig(config as unknown as TruewireConfig)).toThrow(ConfigError);
    expect(() => parseConfig(config as unknown as TruewireConfig)).toThrow(message);
  });

  test("takes the older name of the exact form", () => {
    expect(parseConfig({ wire: "openai", models: [{ kind: "local", path: "x", wire: "openai" }] })).toMatchObject({
      wire: "exact",
      models: [{ wire: "exact" }],
    });
  });

  test.each([
    [{ small: "gpt-4o-mini" }, { small: "gpt-4o-mini" }],
    [["gpt-4o", "gpt-4o-mini"], { "gpt-4o": "gpt-4o", "gpt-4o-mini": "gpt-4o-mini" }],
  ])("an upstream's models may be %j", (models, read) => {
    expect(parseConfig({ models: [{ kind: "upstream", url: "https://x/v1", models }] }).models).toMatchObject([
      { models: read },
    ]);
  });

  test("tells all problems at once", () => {
    const wrong = { port: "x", models: [{ kind: "local" }, { kind: "upstream", url: 3 }] } as unknown as TruewireConfig;
    try {
      parseConfig(wrong);
      expect.unreachable();
    } catch (error) {
      expect((error as ConfigError).problems.map(({ path }) => path)).toEqual([
        ["port"],
        ["models", 0, "path"],
        ["models", 1, "url"],
      ]);
    }
  });
});

describe("the JSON schema", () => {
  test("is the one that is published (npm run schema writes it)", () => {
    const published = readFileSync(new URL("../../../truewire.schema.json", import.meta.url), "utf8");
    expect(JSON.parse(published)).toEqual(configJsonSchema());
  });

  const validate = new Ajv2020({ validateFormats: false }).compile(configJsonSchema());

  test.each([
    {},
    { port: 0, apiKey: ["a"], hold: "1s", models: ["a.gguf", { kind: "local", path: "x.gguf", gpu: 20 }] },
    {
      models: [
        { kind: "upstream", url: "http://x/v1", requests: { add: { a: 1 } } },
        { kind: "program", program: "x.ts" },
      ],
    },
  ])("accepts %j", (config) => {
    expect(validate(config)).toBe(true);
    expect(() => parseConfig(config as TruewireConfig)).not.toThrow();
  });

  test.each([
    { prot: 1 },
    { models: [{ kind: "local" }] },
    { models: [{ kind: "engine", engine: {} }] },
    { hold: "soon" },
  ])("refuses %j", (config) => {
    expect(validate(config)).toBe(false);
  });
});
