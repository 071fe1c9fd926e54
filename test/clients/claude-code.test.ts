import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { Message } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { claudeCode, runClaudeCode } from "../support/claude-code.ts";
import type { ClaudeCodeRun } from "../support/claude-code.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";

const claude = claudeCode() ?? "";

/** One thing that the model does: says a text, or calls a tool. */
type Step = string | { readonly tool: string; readonly input: object };

describe.skipIf(!existsSync(claude))("Claude Code", () => {
  let folder: string;
  let server: TruewireServer | undefined;
  let environment: Readonly<Record<string, string>>;
  beforeEach(() => {
    environment = {};
    folder = mkdtempSync(join(tmpdir(), "truewire-claude-"));
    mkdirSync(join(folder, "work"));
    writeFileSync(join(folder, "work", "sum.js"), "console.log(1 - 2);\n");
  });
  afterEach(async () => {
    await server?.close(0);
    rmSync(folder, { recursive: true, force: true });
  });

  async function serve(respond: (request: GenerationRequest) => readonly GenerationEvent[]): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine((request) => [respond(request)], "local");
    server = await createServer({
      port: 0,
      logLevel: "silent",
      models: [{ kind: "engine", engine, aliases: ["*claude-*"] }],
    });
    return engine;
  }

  function run(prompt: string, ...options: string[]): Promise<ClaudeCodeRun> {
    const place = { folder, url: server?.url ?? "", environment };
    const always = ["--output-format", "json", "--allowedTools", "Read,Edit,Bash"];
    return runClaudeCode(claude, place, prompt, ...always, ...options);
  }

  test.each([
    [
      "Bedrock",
      (url: string) => ({
        CLAUDE_CODE_USE_BEDROCK: "1",
        CLAUDE_CODE_SKIP_BEDROCK_AUTH: "1",
        ANTHROPIC_BEDROCK_BASE_URL: url,
        AWS_REGION: "us-east-1",
      }),
    ],
    [
      "Vertex AI",
      (url: string) => ({
        CLAUDE_CODE_USE_VERTEX: "1",
        CLAUDE_CODE_SKIP_VERTEX_AUTH: "1",
        ANTHROPIC_VERTEX_BASE_URL: `${url}/v1`,
        ANTHROPIC_VERTEX_PROJECT_ID: "p",
        CLOUD_ML_REGION: "us-east5",
      }),
    ],
  ])("set up for %s, it reads a file and ends", async (_, settings) => {
    const file = join(folder, "work", "sum.js");
    const steps: Step[] = [{ tool: "Read", input: { file_path: file } }, "It subtracts."];
    const engine = await serve((request) => said(steps[callsIn(request)] ?? "Done."));
    environment = settings(server?.url ?? "");
    const { code, stdout, stderr } = await run("What does sum.js do?");
    expect(stderr).toBe("");
    expect([code, stdout]).toEqual([0, expect.stringContaining("It subtracts.")]);
    expect(engine.requests.some((request) => callsIn(request) === 1)).toBe(true);
  });

  test("reads, edits, runs a command, sees one fail, and ends", async () => {
    const file = join(folder, "work", "sum.js");
    const steps: Step[] = [
      { tool: "Read", input: { file_path: file } },
      { tool: "Edit", input: { file_path: file, old_string: "1 - 2", new_string: "1 + 2" } },
      { tool: "Bash", input: { command: "node sum.js", description: "Run it" } },
      { tool: "Bash", input: { command: "cat no-such-file", description: "Fail" } },
      "It says 3 now.",
    ];
    const engine = await serve((request) => said(steps[callsIn(request)] ?? "Done."));
    const { code, stdout, stderr } = await run("Make sum.js add.");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ subtype: "success", is_error: false, result: "It says 3 now." });
    expect(readFileSync(file, "utf8")).toBe("console.log(1 + 2);\n");
    const last = engine.requests.find((request) => callsIn(request) === 4);
    const results = messagesOf(last).filter(({ role }) => role === "tool");
    expect(results.map((message) => (message.role === "tool" ? [message.name, message.isError ?? false] : []))).toEqual(
      [
        ["Read", false],
        ["Edit", false],
        ["Bash", false],
        ["Bash", true],
      ],
    );
    expect(JSON.stringify(results[2]?.content)).toContain("3");
    // Claude Code asks for thoughts without their text; they come back from the signature.
    expect(JSON.stringify(messagesOf(last))).toContain("I think.");
    expect(JSON.stringify(messagesOf(last))).not.toContain("x-anthropic-billing-header");
  });

  test("a context that is full makes it compact its history, and go on", async () => {
    let compacted = false;
    const engine = await serve((request) => {
      const last = JSON.stringify(messagesOf(request).at(-1));
      if (/summary of the conversation/i.test(last)) {
        compacted = true;
        return said("<summary>The file is sum.js.</summary>");
      }
      if (!compacted && callsIn(request) >= 2) return overflow;
      return said(
        compacted
          ? "All is well."
          : { tool: "Bash", input: { command: `echo ${callsIn(request)}`, description: "Say" } },
      );
    });
    const { stdout } = await run("Count for a while.");
    expect(compacted).toBe(true);
    expect(JSON.parse(stdout)).toMatchObject({ is_error: false, result: "All is well." });
    expect(engine.requests.length).toBeGreaterThan(3);
  });

  // It sends `diagnostics` only to api.anthropic.com, or to a server that this variable declares to be the same. A session that is resumed
  // keeps its system prompt and tools, whatever the options say.
  test("it sends `diagnostics`, and its transcript has the reason", async () => {
    environment = { _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL: "1" };
    await serve(() => said("Done."));
    const first = JSON.parse((await run("Say done.", "--model", "claude-opus-5")).stdout) as { session_id: string };
    await run("Once more.", "--model", "claude-sonnet-5", "--resume", first.session_id);
    const found = new Map<string, unknown>();
    const projects = join(folder, "home", ".claude", "projects");
    for (const name of readdirSync(projects, { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".jsonl")) continue;
      for (const line of readFileSync(join(projects, name), "utf8").split("\n").filter(Boolean)) {
        const { message } = JSON.parse(line) as { message?: { id?: string; diagnostics?: unknown } };
        if (message?.id !== undefined) found.set(message.id, message.diagnostics);
      }
    }
    expect([...found.values()]).toEqual([
      null,
      { cache_miss_reason: { type: "model_changed", cache_missed_input_tokens: expect.any(Number) } },
    ]);
  });

  test("an error that follows a call keeps it from being run", async () => {
    const marker = join(folder, "work", "ran");
    let asked = 0;
    await serve(() => {
      if (asked++ > 0) return said("I was cut off.");
      const call = said({ tool: "Bash", input: { command: `touch ${marker}`, description: "Touch" } });
      return [...call.filter(({ type }) => type !== "finish" && type !== "end"), broken];
    });
    await run("Touch it.");
    expect(asked).toBeGreaterThan(1);
    expect(existsSync(marker)).toBe(false);
  });
});

const broken: GenerationEvent = {
  type: "end",
  end: { kind: "engine-error", failure: { kind: "unavailable", message: "The engine broke.", status: 503 } },
};

const overflow: readonly GenerationEvent[] = [
  {
    type: "end",
    end: {
      kind: "rejected",
      failure: { kind: "context-overflow", message: "Too long.", status: 400, tokens: { asked: 9000, most: 8192 } },
    },
  },
];

function said(step: Step): GenerationEvent[] {
  const thought: GenerationEvent = { type: "reasoning-delta", choice: 0, text: "I think." };
  const told: GenerationEvent[] =
    typeof step === "string"
      ? [{ type: "text-delta", choice: 0, text: step }]
      : [
          {
            type: "tool-call-start",
            choice: 0,
            index: 0,
            id: `call_${Math.random().toString(36).slice(2)}`,
            name: step.tool,
          },
          { type: "tool-call-delta", choice: 0, index: 0, arguments: JSON.stringify(step.input) },
          { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
        ];
  return [
    { type: "start", choice: 0 },
    thought,
    ...told,
    { type: "finish", choice: 0, reason: typeof step === "string" ? "stop" : "tool-calls" },
    { type: "usage", usage: { promptTokens: 100, completionTokens: 10 } },
    { type: "end", end: { kind: "done" } },
  ];
}

function messagesOf(request: GenerationRequest | undefined): readonly Message[] {
  return request?.prompt.kind === "chat" ? request.prompt.messages : [];
}

/** How many calls were answered so far. */
function callsIn(request: GenerationRequest): number {
  return messagesOf(request).filter(({ role }) => role === "tool").length;
}
