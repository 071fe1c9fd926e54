import { expect, test } from "vitest";
import { parseConfig } from "../config/schema.ts";
import { workerCount } from "./worker-count.ts";

const upstream = "http://localhost:11434/v1";

test("a gateway gets all cores; where there is a model or a program, one process serves", () => {
  expect(workerCount(parseConfig({ models: [upstream, "https://api.example.com/v1"] }), 8)).toBe(8);
  expect(workerCount(parseConfig({ models: [upstream] }), 1)).toBe(1);
  expect(workerCount(parseConfig({ models: [upstream, "model.gguf"] }), 8)).toBe(1);
  expect(workerCount(parseConfig({ models: ["./program.ts"] }), 8)).toBe(1);
});

test("what is asked for", () => {
  expect(workerCount(parseConfig({ workers: 3, models: ["model.gguf"] }), 8)).toBe(3);
  expect(workerCount(parseConfig({ workers: "1", models: [upstream] }), 8)).toBe(1);
  expect(() => parseConfig({ workers: 0 })).toThrow(/workers/);
});
