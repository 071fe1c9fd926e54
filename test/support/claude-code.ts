import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
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
