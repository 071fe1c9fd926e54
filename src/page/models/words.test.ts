import { expect, test } from "vitest";
import { configurationOf, durationText, pullText, repositoryName, stateText } from "./words.ts";

test.each([
  ["hf:owner/repo:Q4_K_M", "hf:owner/repo:Q4_K_M"],
  [" owner/repo ", "hf:owner/repo"],
  ["owner/repo:Q8_0", "hf:owner/repo:Q8_0"],
  ["https://huggingface.co/owner/repo-GGUF", "hf:owner/repo-GGUF"],
  ["https://huggingface.co/owner/repo/tree/main", "hf:owner/repo"],
  // The name of a served model, and what the server refuses in its own words.
  ["chat", "chat"],
  ["https://example.com/model.gguf", "https://example.com/model.gguf"],
])("%j is downloaded as %j", (text, name) => {
  expect(repositoryName(text)).toBe(name);
});

test("the lines of the configuration for a downloaded model", () => {
  expect(configurationOf("hf:owner/Tiny-GGUF:Q4_K_M")).toBe(
    'models:\n  - kind: local\n    path: "hf:owner/Tiny-GGUF:Q4_K_M"\n    name: "Tiny-GGUF"\n    load: lazy\n',
  );
});

test("how far a download is", () => {
  const pull = { model: "m", bytes: 100 * 2 ** 20, total_bytes: 300 * 2 ** 20 };
  expect(pullText({ ...pull, total_bytes: 0 })).toBe("Asking the hub…");
  expect(pullText(pull)).toBe("100 MiB of 300 MiB");
  expect(pullText({ ...pull, bytes_per_second: 5 * 2 ** 20 })).toBe("100 MiB of 300 MiB · 5 MiB/s · 40 s left");
  // Nothing arrives: the time is not known.
  expect(pullText({ ...pull, bytes_per_second: 0 })).toBe("100 MiB of 300 MiB · 0 KiB/s");
  expect([99_000, 600_000, 7_200_000].map(durationText)).toEqual(["99 s", "10 min", "2 h"]);
});

test("states in words", () => {
  const model = { name: "m", models: [], state: "ready" };
  const url = { url: "http://a", open: 0, retries: 0, ejections: 0 };
  const text = (more: object): string => stateText({ ...model, ...more }).text;
  expect(text({ kind: "local" })).toBe("loaded");
  expect(text({ kind: "program" })).toBe("ready");
  expect(text({ kind: "local", state: "unloaded" })).toBe("not loaded");
  expect(text({ kind: "local", leaving: true })).toBe("unloading after its answers");
  expect(text({ state: "loading", progress: { phase: "load", fraction: 0.425 } })).toBe("loading 42 %");
  expect(text({ kind: "upstream", state: "failed", urls: [{ ...url, state: "absent" }] })).toBe("no answer");
  expect(stateText({ ...model, urls: [{ ...url, state: "ejected" }] })).toEqual({
    text: "1 of 1 URLs ejected",
    mark: "error",
  });
});
