import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readBlocks } from "../docs/read-blocks.ts";
import { npmPackage } from "./npm-package.ts";
import { waitMs } from "./hang.ts";

const version = "0.169.0";

/** The script that starts Codex; undefined, with one line that says why, where it cannot be had. */
export function codexLauncher(): string | undefined {
  const modules = npmPackage(`@openai/codex@${version}`);
  if (modules === undefined) return undefined;
  const launcher = join(modules, "@openai/codex/bin/codex.js");
  try {
    execFileSync(process.execPath, [launcher, "--version"], { stdio: "ignore" });
    return launcher;
  } catch {
    console.log(`skipped: Codex ${version} does not run on ${process.platform} ${process.arch}`);
    return undefined;
  }
}

/** What `codex exec --json` tells, a line each. */
export interface CodexEvent {
  readonly type: string;
  readonly item?: { readonly type: string; readonly [member: string]: unknown };
  readonly [member: string]: unknown;
}

export interface CodexRun {
  readonly code: number | null;
  readonly events: readonly CodexEvent[];
  /** The items that were completed. */
  readonly items: readonly NonNullable<CodexEvent["item"]>[];
  readonly stderr: string;
}

export interface Codex {
  /** The folder that it works in. */
  readonly folder: string;
  /** `codex exec` with these arguments. */
  exec(...args: string[]): Promise<CodexRun>;
  close(): Promise<void>;
}

export interface CodexSettings {
  readonly url: string;
  readonly model: string;
  readonly config?: string;
  readonly searches?: boolean;
  /** Codex gets a key from a command, and then the models from the server. */
  readonly asksForModels?: boolean;
}

/**
 * Codex in a home of its own, with nothing of this process's environment, and the configuration of docs/clients/codex.md with `model` of
 * the server at `url`. `config` follows the configuration's provider; `searches`: the model is said to search for the tools of MCP servers.
 * Whatever else it would call is refused.
 */
export async function startCodex(
  launcher: string,
  { url, model, config = "", searches = false, asksForModels = false }: CodexSettings,
): Promise<Codex> {
  const home = mkdtempSync(join(resolve(".cache"), "codex-home-"));
  const folder = join(home, "work");
  await mkdir(join(home, ".codex"), { recursive: true });
  await mkdir(folder);
  const page = "docs/clients/codex.md";
  const blocks = readBlocks(page, readFileSync(page, "utf8"));
  const file = (language: string): string => {
    const block = blocks.find((block) => block.language === language);
    if (block === undefined) throw new Error(`${page} has no ${language}`);
    return block.text.replaceAll("my-model", model).replaceAll("http://127.0.0.1:8080", url);
  };
  const withCatalog = file("toml");
  const auth = `[model_providers.truewire.auth]\ncommand = "/bin/echo"\nargs = ["key"]\n`;
  const settings = asksForModels ? `${withCatalog.replace(/^model_catalog_json.*\n/m, "")}\n${auth}` : withCatalog;
  await writeFile(join(home, ".codex/config.toml"), `${settings}\n${config}\n`);
  await writeFile(
    join(home, ".codex/truewire-models.json"),
    file("json").replace('"supports_search_tool": false', `"supports_search_tool": ${searches}`),
  );
  const nowhere = "http://127.0.0.1:9";
  const env = { HOME: home, PATH: "/usr/bin:/bin", HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: "127.0.0.1" };
  return {
    folder,
    async exec(...args) {
      const options = ["--strict-config", "--json", "--skip-git-repo-check"];
      const sandbox = ["-c", 'sandbox_mode="danger-full-access"'];
      const child = spawn(process.execPath, [launcher, "exec", ...sandbox, ...args, ...options], {
        cwd: folder,
        env,
        stdio: ["ignore", "pipe", "pipe"],
        timeout: waitMs,
      });
      let stdout = "";
      let stderr = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
      child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
      const code = await new Promise<number | null>((settle) => child.on("close", settle));
      const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
      const events = lines.map((line) => JSON.parse(line) as CodexEvent);
      const items = events.flatMap(({ type, item }) => (type === "item.completed" && item ? [item] : []));
      return { code, events, items, stderr };
    },
    close: () => rm(home, { recursive: true, force: true }),
  };
}
