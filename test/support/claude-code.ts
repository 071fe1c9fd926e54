import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { waitMs } from "./hang.ts";
import { npmPackage } from "./npm-package.ts";

/**
 * The command of Claude Code, which is proprietary: the npm registry's is run, only against this machine, with a home of its own, and
 * nothing of it is kept in this repository. CLAUDE_CODE may name the command of another version. undefined where it cannot be had.
 */
export function claudeCode(): string | undefined {
  const given = process.env["CLAUDE_CODE"];
  if (given !== undefined) return existsSync(given) ? given : undefined;
  const modules = npmPackage("@anthropic-ai/claude-code@2.1.330");
  if (modules === undefined) return undefined;
  const folder = join(modules, "@anthropic-ai");
  // The package has one binary per platform.
  const file = readdirSync(folder)
    .map((name) => join(folder, name, "claude"))
    .find((path) => existsSync(path));
  if (file === undefined) console.log("skipped: Claude Code has no binary for this platform");
  return file;
}

export interface ClaudeCodeRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Claude Code with a prompt, in `work` of a folder, with a home of its own in `home`. `url`: of the server that it asks. */
export function runClaudeCode(
  command: string,
  { folder, url, environment = {} }: { folder: string; url: string; environment?: Readonly<Record<string, string>> },
  prompt: string,
  ...options: readonly string[]
): Promise<ClaudeCodeRun> {
  for (const name of ["home", "work"]) mkdirSync(join(folder, name), { recursive: true });
  const child = spawn(command, ["-p", prompt, ...options], {
    cwd: join(folder, "work"),
    env: {
      HOME: join(folder, "home"),
      PATH: process.env["PATH"] ?? "",
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "sk-ant-test",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: waitMs,
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stdout, stderr })));
}
