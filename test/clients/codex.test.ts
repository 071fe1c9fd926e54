import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/app/create-server.ts";
import type { TruewireServer } from "../../src/app/create-server.ts";
import type { ProgramEvent, ProgramInput } from "../../src/engines/program/program.ts";
import { npmPackage } from "../support/npm-package.ts";

const modules = npmPackage("@openai/codex@0.169.0");

/** What the model says in each of its turns, by how many results of calls there are. */
type Turns = readonly (readonly (string | ProgramEvent)[])[];

const call = (name: string, input: string | object): ProgramEvent => ({ type: "tool-call", name, arguments: input });

const patch = "*** Begin Patch\n*** Update File: note.txt\n@@\n-one\n+two\n*** End Patch\n";

/** An MCP server with one tool, `double`. */
const mcpServer = `
const tool = { name: "double", inputSchema: { type: "object", properties: { number: { type: "number" } }, required: ["number"] } };
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "maths", version: "1" } }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: { number } }) => ({ content: [{ type: "text", text: "twice is " + 2 * number }] }),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]?.(params) ?? {} }));
});
`;

describe.skipIf(!modules)("Codex", () => {
  const home = mkdtempSync(join(tmpdir(), "truewire-codex-"));
  const work = mkdtempSync(join(tmpdir(), "truewire-codex-work-"));
  const inputs: ProgramInput[] = [];
  let turns: Turns = [];
  let server: TruewireServer;

  beforeAll(async () => {
    // oxlint-disable-next-line require-yield -- each turn yields what the test says
    async function* program(input: ProgramInput): AsyncGenerator<string | ProgramEvent> {
      inputs.push(input);
      const results = input.messages.filter(({ role }) => role === "tool").length;
      yield { type: "reasoning", text: `Thought ${results}. ` };
      for (const item of turns[results] ?? ["I am lost."]) yield item;
    }
    // gpt-5.5 is a name under which Codex offers its custom tool; any other has namespaces.
    server = await createServer({
      port: 0,
      logLevel: "silent",
      models: [{ kind: "program", program, name: "gpt-5.5", aliases: ["local"] }],
    });
    writeFileSync(join(home, "maths.cjs"), mcpServer);
    const provider = ["name = 'truewire'", `base_url = '${server.url}/v1'`, "wire_api = 'responses'"];
    const mcp = [`command = '${process.execPath}'`, `args = ['${join(home, "maths.cjs")}']`];
    const lines = [
      "model_provider = 'truewire'",
      "[model_providers.truewire]",
      ...provider,
      "[mcp_servers.maths]",
      ...mcp,
    ];
    writeFileSync(join(home, "config.toml"), `${lines.join("\n")}\n`);
  });
  afterAll(async () => {
    await server.close();
    for (const folder of [home, work]) rmSync(folder, { recursive: true, force: true });
  });

  /** Runs Codex to its end; what it says at last. */
  async function codex(model: string, ...more: string[]): Promise<string> {
    const last = join(home, "last.txt");
    inputs.length = 0;
    const options = [
      "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox",
      "-o",
      last,
      "-m",
      model,
      ...more,
    ];
    const bin = join(modules ?? "", ".bin/codex");
    const running = promisify(execFile)(bin, ["exec", ...options, "Do it."], {
      cwd: work,
      env: { ...process.env, CODEX_HOME: home },
      timeout: 60_000,
    });
    running.child.stdin?.end();
    await running;
    return readFileSync(last, "utf8");
  }

  const contentOf = (place: number): string => JSON.stringify(inputs.at(-1)?.messages.at(place)?.content);

  test("runs commands, and calls a tool of an MCP server by its namespace", async () => {
    writeFileSync(join(work, "note.txt"), "one\n");
    turns = [
      [call("exec_command", { cmd: "cat note.txt" })],
      [call("mcp__maths__double", { number: 21 })],
      ["All ", "done."],
    ];
    expect(await codex("local")).toBe("All done.");
    expect(inputs).toHaveLength(3);
    expect(JSON.stringify(inputs[1]?.messages.at(-1)?.content)).toContain("one");
    expect(contentOf(-1)).toContain("twice is 42");
  }, 90_000);

  test("applies a patch through its custom tool, and gives thoughts back", async () => {
    writeFileSync(join(work, "note.txt"), "one\n");
    turns = [[call("apply_patch", patch)], ["Patched."]];
    expect(await codex("gpt-5.5", "-c", "model_reasoning_summary='auto'")).toBe("Patched.");
    expect(readFileSync(join(work, "note.txt"), "utf8")).toBe("two\n");
    const said = inputs.at(-1)?.messages.filter(({ role }) => role === "assistant") as { reasoning_content?: string }[];
    expect(said.map(({ reasoning_content: thought }) => thought)).toEqual(["Thought 0. "]);
  }, 90_000);

  // A failure after a whole call would make Codex run it again.
  test("runs no command of an answer that failed", async () => {
    writeFileSync(join(work, "runs.txt"), "");
    let failures = 1;
    const failing = {
      *[Symbol.iterator](): Generator<ProgramEvent> {
        yield call("exec_command", { cmd: "echo run >> runs.txt" });
        if (failures-- > 0) throw new Error("The model broke.");
      },
    };
    turns = [failing as unknown as Turns[number], ["Ran."]];
    expect(await codex("local")).toBe("Ran.");
    expect(readFileSync(join(work, "runs.txt"), "utf8")).toBe("run\n");
  }, 90_000);
});
