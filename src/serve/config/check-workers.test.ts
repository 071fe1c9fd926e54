import { describe, expect, test } from "vitest";
import type { TruewireConfig } from "./schema.ts";
import { parseConfig } from "./schema.ts";
import { checkWorkers } from "./check-workers.ts";

const redis = "redis://localhost:6379";
const upstreams: TruewireConfig = { models: ["https://api.example.com/v1"], workers: 2 };
const hash = `sha256:${"0".repeat(64)}`;
const limited = [{ name: "alice", hash, requestsPerMinute: 3 }];

function refusalOf(config: TruewireConfig): string | undefined {
  try {
    checkWorkers(config, parseConfig(config).keys);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

describe("several workers are refused", () => {
  const storing = { store: redis };
  test.each<[string, TruewireConfig, RegExp]>([
    ["with a local model", { ...storing, models: ["model.gguf"] }, /load the local model .* another `truewire serve`/],
    ["with a program", { ...storing, models: ["./program.ts"] }, /run the program .* another `truewire serve`/],
    ["with limits and no Redis", { ...storing, keys: limited }, /Set sharedLimits: redis:/],
    ["with stored responses in memory", {}, /Set store: redis:/],
    ["with stored responses in a folder", { store: "./responses" }, /Set store: redis:/],
    ["with turns in memory", { store: { maxCount: 0 } }, /sessions: \{ memory: false \}/],
    ["with Inspect", { ...storing, inspect: true }, /Remove inspect/],
    ["with streams that are resumed", { ...storing, resumeStreams: "5m" }, /Remove resumeStreams/],
  ])("%s", (_, config, says) => {
    const refusal = refusalOf({ ...upstreams, ...config });
    expect(refusal).toMatch(/^workers: .*, or set workers: 1$/);
    expect(refusal).toMatch(says);
    expect(refusalOf({ ...upstreams, ...config, workers: 1 })).toBeUndefined();
  });
});

test("several workers serve what is in Redis, or off", () => {
  const nothing: TruewireConfig = { store: { maxCount: 0 }, sessions: { memory: false } };
  expect(refusalOf({ ...upstreams, store: redis, sharedLimits: redis, keys: limited })).toBeUndefined();
  expect(refusalOf({ ...upstreams, ...nothing, keys: [{ name: "bob", hash }] })).toBeUndefined();
  expect(refusalOf({ ...upstreams, ...nothing, inspect: false, resumeStreams: 0 })).toBeUndefined();
});
