import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { Message } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { claudeCode } from "../support/claude-code.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { waitMs } from "../support/hang.ts";
import { searxngDouble } from "../doubles/searxng.ts";
import type { TruewireConfig } from "../../src/serve/config/config.ts";

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
    for (const name of ["home", "work"]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, "work", "sum.js"), "console.log(1 - 2);\n");
  });
  afterEach(async () => {
    await server?.close(0);
    rmSync(folder, { recursive: true, force: true });
  });

  async function serve(
    respond: (request: GenerationRequest) => readonly GenerationEvent[],
    more: TruewireConfig = {},
  ): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine((request) => [respond(request)], "local");
    server = await createServer({
      port: 0,
      logLevel: "silent",
      models: [{ kind: "engine", engine, aliases: ["claude-*"] }],
      ...more,
    });
    return engine;
  }

  function run(prompt: string, ...options: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = spawn(
      claude,
      ["-p", prompt, "--output-format", "json", "--allowedTools", "Read,Edit,Bash", ...options],
      {
        cwd: join(folder, "work"),
        env: {
          HOME: join(folder, "home"),
          PATH: process.env["PATH"] ?? "",
          ANTHROPIC_BASE_URL: server?.url ?? "",
          ANTHROPIC_API_KEY: "sk-ant-test",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_AUTOUPDATER: "1",
          ...environment,
        },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: waitMs,
      },
    );
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    return new Promise((resolve) => child.on("close", (code) => resolve({ code, stdout, stderr })));
  }

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

  // Its WebSearch is a request of its own with Anthropic's tool; it reported "Did 0 searches", and cited what the model had invented.
  test("searches the web by what the server is configured with, and gets the results", async () => {
    const page = { url: "https://truewire.example/notes", title: "Release notes", content: "Version 2 is faster." };
    const searxng = await searxngDouble([page]);
    try {
      await serve(
        (request) => {
          const names = new Set((request.tools ?? []).map(({ name }) => name));
          const results = JSON.stringify(messagesOf(request).filter(({ role }) => role === "tool"));
          if (names.has("web_search"))
            return said(
              results === "[]"
                ? { tool: "web_search", input: { query: "truewire release notes" } }
                : `See [the notes](${page.url}).`,
            );
          if (!names.has("WebSearch")) return said("Done.");
          return said(
            results === "[]"
              ? { tool: "WebSearch", input: { query: "truewire release notes" } }
              : `They say: ${/Version 2 is faster|Release notes/.exec(results)?.[0] ?? "nothing"}.`,
          );
        },
        { hostedTools: { webSearch: searxng.url } },
      );
      const { code, stdout } = await run(
        "What do the release notes say?",
        "--tools",
        "WebSearch",
        "--allowedTools",
        "WebSearch",
        "--output-format",
        "stream-json",
        "--verbose",
      );
      expect(code).toBe(0);
      expect(searxng.searches.map((search) => search.get("q"))).toEqual(["truewire release notes"]);
      const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
      const told = lines.map((line) => JSON.parse(line) as { type: string; tool_use_result?: object; result?: string });
      // What its interface says as "Did 1 search" is made of this.
      expect(told.find(({ tool_use_result: result }) => result)?.tool_use_result).toMatchObject({
        query: "truewire release notes",
        searchCount: 1,
        results: expect.arrayContaining([
          expect.objectContaining({ content: [{ title: page.title, url: page.url }] }),
        ]) as unknown,
      });
      expect(told.at(-1)).toMatchObject({ type: "result", result: "They say: Release notes." });
    } finally {
      searxng.close();
    }
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
