import { expect, test } from "vitest";
import { modelOfTarget } from "./target.ts";

test.each([
  ["model.gguf", { kind: "local", path: "model.gguf" }],
  ["hf:owner/repo:Q4_K_M", { kind: "local", path: "hf:owner/repo:Q4_K_M" }],
  ["gpt-4o=./a=b.gguf", { kind: "local", path: "./a=b.gguf", name: "gpt-4o" }],
  ["./a=b.gguf", { kind: "local", path: "./a=b.gguf" }],
  ["/models/a=b.gguf", { kind: "local", path: "/models/a=b.gguf" }],
  ["http://localhost:11434/v1", { kind: "upstream", url: "http://localhost:11434/v1" }],
  ["https://host/v1?api-version=1", { kind: "upstream", url: "https://host/v1?api-version=1" }],
  ["ollama=http://localhost:11434/v1", { kind: "upstream", url: "http://localhost:11434/v1", name: "ollama" }],
  ["localhost:11434/v1", { kind: "upstream", url: "http://localhost:11434/v1" }],
  ["10.0.0.5:8000", { kind: "upstream", url: "http://10.0.0.5:8000/v1" }],
  ["http://10.0.0.5:8000", { kind: "upstream", url: "http://10.0.0.5:8000" }],
  ["ollama=[::1]:11434/v1", { kind: "upstream", url: "http://[::1]:11434/v1", name: "ollama" }],
  ["hf:owner/repo:8", { kind: "local", path: "hf:owner/repo:8" }],
  ["C:\\models\\a.gguf", { kind: "local", path: "C:\\models\\a.gguf" }],
  ["org/name:7b=x.gguf", { kind: "local", path: "x.gguf", name: "org/name:7b" }],
  ["./program.ts", { kind: "program", program: "./program.ts" }],
  ["bot=dist/bot.mjs", { kind: "program", program: "dist/bot.mjs", name: "bot" }],
])("%s", (target, model) => {
  expect(modelOfTarget(target)).toEqual(model);
});
