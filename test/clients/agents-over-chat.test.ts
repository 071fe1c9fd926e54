import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { codexLauncher, startCodex } from "../support/codex.ts";
import { claudeCode } from "../support/claude-code.ts";
import { startGateway } from "../upstream/gateway.ts";
import { deepseek } from "../doubles/deepseek.ts";
import { mistral } from "../doubles/mistral.ts";
import { ollama, ollamaNative } from "../doubles/ollama.ts";
import { hasTemplate, qwen } from "../doubles/qwen.ts";
import { listOf, startChat } from "../doubles/chat-server.ts";
import type { Json, ChatServer, Turn } from "../doubles/chat-server.ts";
import { vllm } from "../doubles/vllm.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { waitMs } from "../support/hang.ts";

/*
 * Codex and Claude Code themselves, over Truewire, over servers that refuse what the real ones refuse: a whole loop of a command, an edit
 * and an answer. Before, Codex's edits were lost with exit code 0, and Claude Code's first request was refused.
 */

const servers: readonly ChatServer[] = [
  vllm,
  ...(hasTemplate ? [qwen()] : []),
  deepseek,
  mistral,
  ollama(),
  ollamaNative,
];

/** Truewire before a server whose model makes these turns, one for each result that the conversation has. */
async function serve(server: ChatServer, turns: readonly Turn[]) {
  const resultsOf = (body: Json): number => listOf(body["messages"]).filter(({ role }) => role === "tool").length;
  const upstream = await startChat(server, (body) => turns[resultsOf(body)] ?? "Done.", ["scripted"]);
  closeAfterTest(() => upstream.close());
  // It was asked over its OpenAI endpoint, as its model has no tag: the prompt was cut without a word.
  const api = server === ollamaNative ? "ollama" : "chat";
  const truewire = await startGateway(upstream.url, { api, aliases: ["claude-*"] });
  closeAfterTest(() => truewire.close(0));
  return { upstream, truewire };
}

const launcher = codexLauncher();

describe.skipIf(launcher === undefined)("Codex", () => {
  test.each(servers)("runs a command, edits a file and ends: $name", async (server) => {
    const patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n first\n-second\n+zweite Zeile 😀\n*** End Patch\n";
    const { upstream, truewire } = await serve(server, [
      { calls: [{ name: "exec_command", input: { cmd: "cat notes.txt" } }] },
      { calls: [{ name: "apply_patch", input: { input: patch } }] },
      "Done. All of it.",
    ]);
    const codex = await startCodex(launcher ?? "", { url: truewire.url, model: "scripted" });
    closeAfterTest(() => codex.close());
    const notes = join(codex.folder, "notes.txt");
    writeFileSync(notes, "first\nsecond\nthird\n");
    const { code, items } = await codex.exec("Translate the second line.");
    expect(upstream.refusals).toEqual([]);
    expect(code).toBe(0);
    expect(items).toMatchObject([
      { type: "command_execution", exit_code: 0 },
      { type: "file_change", status: "completed" },
      { type: "agent_message", text: "Done. All of it." },
    ]);
    expect(readFileSync(notes, "utf8")).toBe("first\nzweite Zeile 😀\nthird\n");
  });
});

const claude = claudeCode();

describe.skipIf(claude === undefined)("Claude Code", () => {
  test.each(servers)("reads a file, edits it and ends: $name", async (server) => {
    const folder = mkdtempSync(join(tmpdir(), "truewire-claude-"));
    closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ["home", "work"]) mkdirSync(join(folder, name));
    const file = join(folder, "work", "sum.js");
    writeFileSync(file, "console.log(1 - 2);\n");
    const edit = { file_path: file, old_string: "1 - 2", new_string: "1 + 2" };
    const { upstream, truewire } = await serve(server, [
      { calls: [{ name: "Read", input: { file_path: file } }] },
      { calls: [{ name: "Edit", input: edit }] },
      "It adds now.",
    ]);
    // With stream-json, Claude Code asks for thinking with `display: "updates"`.
    const args = ["-p", "Make it add.", "--model", "scripted", "--output-format", "stream-json", "--verbose"];
    const child = spawn(claude ?? "", [...args, "--allowedTools", "Read,Edit"], {
      cwd: join(folder, "work"),
      env: {
        HOME: join(folder, "home"),
        PATH: process.env["PATH"] ?? "",
        ANTHROPIC_BASE_URL: truewire.url,
        ANTHROPIC_API_KEY: "sk-ant-test",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
      },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: waitMs,
    });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    const code = await new Promise((resolve) => child.on("close", resolve));
    expect(upstream.refusals).toEqual([]);
    expect([code, existsSync(file) && readFileSync(file, "utf8")]).toEqual([0, "console.log(1 + 2);\n"]);
    const last = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Json;
    expect(last).toMatchObject({ type: "result", is_error: false, result: "It adds now." });
  });
});
