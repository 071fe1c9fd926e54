import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { parseConfig } from "../config/schema.ts";
import { workerCount, coresOfQuota } from "./processes.ts";

const upstream = "http://localhost:11434/v1";

test("a gateway gets all cores; where there is a model or a program, one process serves", () => {
  const host = "0.0.0.0";
  expect(workerCount(parseConfig({ host, models: [upstream, "https://api.example.com/v1"] }), 8)).toBe(8);
  expect(workerCount(parseConfig({ host, models: [upstream] }), 1)).toBe(1);
  expect(workerCount(parseConfig({ host, models: [upstream, "model.gguf"] }), 8)).toBe(1);
  expect(workerCount(parseConfig({ models: ["./program.ts"] }), 8)).toBe(1);
});

test("a gateway of this machine that inspects its requests by default has one process", () => {
  expect(workerCount(parseConfig({ models: [upstream] }), 8)).toBe(1);
  expect(workerCount(parseConfig({ models: [upstream], inspect: false }), 8)).toBe(8);
  expect(workerCount(parseConfig({ models: [upstream], apiKey: "client-key-1" }), 8)).toBe(8);
  const apiKey = "client-key-1";
  expect(workerCount(parseConfig({ models: [upstream], apiKey, adminKey: "admin-key-1", inspect: true }), 8)).toBe(8);
});

test("what is asked for", () => {
  expect(workerCount(parseConfig({ workers: 3, models: ["model.gguf"] }), 8)).toBe(3);
  expect(workerCount(parseConfig({ workers: "1", models: [upstream] }), 8)).toBe(1);
  expect(() => parseConfig({ workers: 0 })).toThrow(/workers/);
});

/** A gateway with half a core of a large machine started a worker for each of the machine's cores. */
test("a container's share of the processors", () => {
  expect(coresOfQuota("200000 100000\n")).toBe(2);
  expect(coresOfQuota("150000 100000\n")).toBe(1);
  expect(coresOfQuota("50000 100000\n")).toBe(1);
  expect(coresOfQuota("max 100000\n")).toBe(Infinity);
  expect(coresOfQuota("max")).toBe(Infinity);
  expect(coresOfQuota("")).toBe(Infinity);
});

// An unknown flag is ignored without an error.
test("V8 still has the flag with which objects are kept young", () => {
  expect(execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" })).toContain(
    "--allocation-site-pretenuring",
  );
});
