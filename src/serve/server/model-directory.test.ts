import { expect, test } from "vitest";
import type { Engine, ModelInfo } from "../../wire/core/engine.ts";
import { matchesAlias, ModelDirectory, modelsOf } from "./model-directory.ts";

function engineOf(models: () => readonly ModelInfo[]): Engine {
  return {
    models,
    generate: () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
    }),
    health: () => ({ state: "ready" }),
    close: () => Promise.resolve(),
  };
}

function listOf(...ids: string[]): ModelInfo[] {
  return ids.map((id) => ({ id, created: 1, ownedBy: "test", endpoints: ["chat", "completions"] }));
}

// Lists were compared by identity, so an engine that makes its list anew each time had all models gathered for every request.
test("an engine that makes its list anew each time does not have it read again", () => {
  const directory = new ModelDirectory([
    { name: "a", engine: engineOf(() => listOf("one", "two")), aliases: [], settings: {} },
  ]);
  expect(directory.find("two")).toBeDefined();
  expect(directory.find("two")).toBe(directory.find("two"));
});

test("a model of this server keeps its name, also after an upstream that has one of the same name", () => {
  const directory = new ModelDirectory([
    { name: "ollama", kind: "upstream", engine: engineOf(() => listOf("big", "demo")), aliases: [], settings: {} },
    { name: "demo", kind: "local", engine: engineOf(() => listOf("demo")), aliases: [], settings: {} },
  ]);
  expect(directory.list().map(({ info }) => info.id)).toEqual(["big", "ollama/demo", "demo"]);
  expect(directory.find("demo")?.from.kind).toBe("local");
});

test("a model that comes, goes or changes is noticed", () => {
  let models = listOf("one", "two");
  const directory = new ModelDirectory([
    { name: "a", engine: engineOf(() => models), aliases: ["alias"], settings: {} },
  ]);
  expect(directory.list().map(({ info }) => info.id)).toEqual(["one", "two", "alias"]);
  models = listOf("one", "three");
  expect(directory.list().map(({ info }) => info.id)).toEqual(["one", "three", "alias"]);
  models = listOf("one", "three").map((model) => ({ ...model, contextLength: 5 }));
  expect(directory.find("three")?.info.contextLength).toBe(5);
  models = listOf("one", "three").map((model) => ({ ...model, contextLength: 5, endpoints: ["chat"] }));
  expect(directory.find("three")?.info.endpoints).toEqual(["chat"]);
});

// A pattern without `*` matched every name that begins with it: a key for `gpt-4` could use `gpt-4-turbo`, and `/images` passed `/images/x` on.
test("a pattern without a star matches one name", () => {
  expect([matchesAlias("gpt-4", "gpt-4"), matchesAlias("gpt-4", "gpt-4-turbo")]).toEqual([true, false]);
  expect(["a*", "*c", "a*c", "*", "b*"].map((alias) => matchesAlias(alias, "abc"))).toEqual([
    true,
    true,
    true,
    true,
    false,
  ]);
  const directory = new ModelDirectory([
    { name: "a", engine: engineOf(() => listOf("gpt-4", "gpt-4-turbo")), aliases: [], settings: {} },
  ]);
  const own = modelsOf({ owner: "ann", models: ["gpt-4"] }, directory);
  expect(own.list().map(({ info }) => info.id)).toEqual(["gpt-4"]);
  expect(own.find("gpt-4-turbo")).toBeUndefined();
});
