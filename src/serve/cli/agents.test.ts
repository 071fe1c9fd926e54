import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agents, chooseModel, contextProblem } from "./agents.ts";
import { findCommand } from "./launch-action.ts";
import type { Agent, AgentSetup, AgentTarget, ChatModel } from "./agents.ts";

const model = (slug: string, context?: number, ...more: string[]): ChatModel => ({
  slug,
  ...(context !== undefined && { context_window: context }),
  input_modalities: ["text", ...more],
});
const [small, large, open] = [model("small", 4096), model("large", 65_536, "image"), model("open")];

const target: AgentTarget = {
  url: "http://127.0.0.1:8080",
  key: "secret",
  model: large,
  models: [small, large, open],
  folder: "/cache/agent",
};

function agent(name: string): Agent {
  const found = agents[name];
  if (found === undefined) throw new Error(name);
  return found;
}

const setupOf = (name: string, changes: Partial<AgentTarget> = {}): AgentSetup =>
  agent(name).setup({ ...target, ...changes });

const fileOf = (name: string, file: string): unknown => JSON.parse(setupOf(name).files?.[file] ?? "null");

test("Codex gets its provider as arguments, and the server's catalog as a file", () => {
  const { args = [], env } = setupOf("codex");
  expect(args.filter((each) => each !== "-c")).toEqual([
    'model="large"',
    'model_provider="truewire"',
    'model_catalog_json="/cache/agent/truewire-models.json"',
    'model_providers.truewire.name="Truewire"',
    'model_providers.truewire.base_url="http://127.0.0.1:8080/v1"',
    'model_providers.truewire.wire_api="responses"',
    'model_providers.truewire.env_key="TRUEWIRE_CLIENT_KEY"',
  ]);
  expect(env).toEqual({ CODEX_HOME: "/cache/agent", TRUEWIRE_CLIENT_KEY: "secret" });
  expect(fileOf("codex", "truewire-models.json")).toEqual({ models: [small, large, open] });
});

test("every name of a model of Claude Code means the chosen one", () => {
  const { env, files, firstFiles } = setupOf("claude");
  for (const name of Object.keys(env).filter((each) => /^ANTHROPIC.*MODEL$|SUBAGENT_MODEL$/.test(each)))
    expect([name, env[name]]).toEqual([name, "large"]);
  expect(env).toMatchObject({
    ANTHROPIC_BASE_URL: "http://127.0.0.1:8080",
    ANTHROPIC_AUTH_TOKEN: "secret",
    ANTHROPIC_DEFAULT_HAIKU_MODEL: "large",
    ANTHROPIC_SMALL_FAST_MODEL: "large",
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: "65536",
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: "16384",
    CLAUDE_CONFIG_DIR: "/cache/agent",
  });
  // The user's own key and cloud would win over the server.
  for (const name of ["ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"])
    expect([name, name in env, env[name]]).toEqual([name, true, undefined]);
  // The theme that the user chooses is not asked for again.
  expect([files, Object.keys(firstFiles ?? {})]).toEqual([undefined, [".claude.json"]]);
  // Once, it assumed a million tokens where the context is unknown, and the server cut its prompts.
  expect(setupOf("claude", { model: open }).env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"]).toBe("32768");
});

test("opencode gets its configuration in a variable, which has room for a hundred models", () => {
  const models = Array.from({ length: 1000 }, (_, at) => model(`provider/some-model-with-a-name-${at}`, 131_072));
  const { env } = setupOf("opencode", { models });
  const text = env["OPENCODE_CONFIG_CONTENT"] ?? "";
  expect(text.length).toBeLessThan(100_000);
  expect(text).not.toContain("secret");
  const { provider, ...rest } = JSON.parse(text) as { provider: { truewire: { models: object; options: object } } };
  expect(rest).toEqual({ model: "truewire/large", small_model: "truewire/large" });
  expect(provider.truewire.options).toEqual({
    baseURL: "http://127.0.0.1:8080/v1",
    apiKey: "{env:TRUEWIRE_CLIENT_KEY}",
  });
  expect(Object.entries(provider.truewire.models)[0]).toEqual([
    "large",
    {
      name: "large",
      attachment: true,
      modalities: { input: ["text", "image"], output: ["text"] },
      limit: { context: 65_536, output: 16_384 },
    },
  ]);
});

test("Crush, Qwen Code and Continue", () => {
  expect(fileOf("crush", "crush.json")).toMatchObject({
    providers: { truewire: { base_url: "http://127.0.0.1:8080/v1", api_key: "$TRUEWIRE_CLIENT_KEY" } },
    models: { large: { model: "large" }, small: { model: "large" } },
  });
  expect(setupOf("crush").env).toMatchObject({ CRUSH_GLOBAL_CONFIG: "/cache/agent" });
  expect(setupOf("qwen")).toMatchObject({
    args: ["--auth-type", "openai", "--model", "large"],
    env: { OPENAI_BASE_URL: "http://127.0.0.1:8080/v1", OPENAI_API_KEY: "secret", QWEN_HOME: "/cache/agent" },
  });
  expect(setupOf("gemini")).toMatchObject({
    args: ["--model", "large"],
    env: { GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:8080", GEMINI_API_KEY: "secret", GEMINI_CLI_HOME: "/cache/agent" },
  });
  expect(setupOf("continue").args).toEqual(["--config", "/cache/agent/truewire.yaml"]);
  expect(fileOf("continue", "truewire.yaml")).toMatchObject({
    models: [{ model: "large", apiKey: "secret", capabilities: ["tool_use", "image_input"] }],
  });
});

test("the first model with enough context is chosen, else the largest one", () => {
  expect(chooseModel([small, large, open])).toBe(large);
  expect(chooseModel([small, open, large])).toBe(open);
  expect(chooseModel([small, model("medium", 8192)]).slug).toBe("medium");
  expect(chooseModel([small, large], "small")).toBe(small);
  expect(() => chooseModel([])).toThrow("The server has no chat model.");
  expect(() => chooseModel([small, large], "lage")).toThrow("The server has no chat model lage. It has small, large.");
});

test("a context that is too small", () => {
  const [claude, crush] = [agent("claude"), agent("crush")];
  const cure = "serve it with more";
  expect(contextProblem(claude, large, cure)).toBeUndefined();
  expect(contextProblem(claude, open, cure)).toEqual({
    message:
      "The server does not say how large the context of the model open is. Claude Code needs 32,768 tokens, of which its instructions and tools " +
      "take about 12,000: serve it with more, or choose another model with --model.",
    isFatal: false,
  });
  expect(contextProblem(claude, small, cure)).toEqual({
    message:
      "The model small has a context of 4,096 tokens. Claude Code needs 32,768 tokens, of which its instructions and tools take about 12,000: " +
      "serve it with more, or choose another model with --model.",
    isFatal: true,
  });
  expect(contextProblem(claude, model("medium", 16_384), cure)).toMatchObject({ isFatal: false });
  expect(contextProblem(crush, small, cure)).toMatchObject({ isFatal: false });
});

// Most agents are installed with npm, whose commands are scripts on Windows: launch did not start them.
test("the command of an agent: a program or npm's script on Windows, the file of the name elsewhere", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  try {
    for (const name of ["codex", "codex.cmd", "claude.exe"]) writeFileSync(join(folder, name), "", { mode: 0o755 });
    const found = (name: string, platform: NodeJS.Platform): string | undefined =>
      findCommand(name, ["", folder], platform)?.slice(folder.length + 1);
    expect([found("codex", "win32"), found("claude", "win32")]).toEqual(["codex.cmd", "claude.exe"]);
    expect([found("codex", "linux"), found("claude", "linux")]).toEqual(["codex", undefined]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
