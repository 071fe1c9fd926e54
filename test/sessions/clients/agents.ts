import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readBlocks } from "../../docs/read-blocks.ts";
import { claudeCode } from "../../support/claude-code.ts";
import { codexLauncher, startCodex } from "../../support/codex.ts";
import { waitMs } from "../../support/hang.ts";
import { npmPackage } from "../../support/npm-package.ts";
import type { TaskCall } from "../../doubles/task.ts";

/** An agent that runs without a terminal. */
export interface SessionAgent {
  readonly name: string;
  /** The call that runs a command in the agent's shell. */
  shell(command: string): TaskCall;
  /** A session with `model` of the server at `url`, in a folder of its own. */
  open(url: string, model: string): Promise<AgentSession>;
}

export interface AgentSession {
  /** Where it works. */
  readonly folder: string;
  /** Runs the agent with the text, and resolves with what it printed. Each but the first run resumes the session. */
  turn(text: string): Promise<string>;
  close(): Promise<void>;
}

/** The agents of this machine. `isWhole`: also those that take half a minute for a turn. */
export function agents(isWhole: boolean): readonly SessionAgent[] {
  const codex = codexLauncher();
  const claude = claudeCode();
  const opencode = isWhole ? opencodeCommand() : undefined;
  const qwen = isWhole ? qwenLauncher() : undefined;
  return [
    ...(codex === undefined ? [] : [codexAgent(codex)]),
    ...(claude === undefined ? [] : [claudeAgent(claude)]),
    ...(opencode === undefined
      ? []
      : [opencodeAgent(opencode, "@ai-sdk/openai-compatible"), opencodeAgent(opencode, "@ai-sdk/openai")]),
    ...(qwen === undefined ? [] : [qwenAgent(qwen)]),
  ];
}

function codexAgent(launcher: string): SessionAgent {
  return {
    name: "Codex",
    shell: (cmd) => ({ name: "exec_command", input: { cmd } }),
    async open(url, model) {
      const codex = await startCodex(launcher, { url, model });
      let turns = 0;
      return {
        folder: codex.folder,
        async turn(text) {
          const { events, stderr } = await codex.exec(...(turns++ === 0 ? [text] : ["resume", "--last", text]));
          return JSON.stringify(events) + stderr;
        },
        close: () => codex.close(),
      };
    },
  };
}

function claudeAgent(command: string): SessionAgent {
  return {
    name: "Claude Code",
    shell: (text) => ({ name: "Bash", input: { command: text, description: "Run it" } }),
    open: (url, model) =>
      Promise.resolve(
        sessionOf((text, isFirst) => ({
          command,
          args: ["-p", text, "--model", model, "--output-format", "json", "--allowedTools", "Bash"].concat(
            isFirst ? [] : ["--continue"],
          ),
          env: {
            ANTHROPIC_BASE_URL: url,
            ANTHROPIC_API_KEY: "sk-ant-test",
            ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
            DISABLE_AUTOUPDATER: "1",
          },
        })),
      ),
  };
}

/** With the configuration of docs/clients/opencode.md; `provider`: the chat API's or that of Responses. */
function opencodeAgent(command: string, provider: string): SessionAgent {
  return {
    name: `opencode, ${provider}`,
    shell: (text) => ({ name: "bash", input: { command: text, description: "Run it" } }),
    open(url, model) {
      const session = sessionOf((text, isFirst) => ({
        command,
        args: ["run", "--format", "json", ...(isFirst ? [] : ["--continue"]), text],
        env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" },
      }));
      const page = "docs/clients/opencode.md";
      const [block] = readBlocks(page, readFileSync(page, "utf8"));
      const configuration = (block?.text ?? "")
        .replaceAll("my-model", model)
        .replace("http://127.0.0.1:8080", url)
        .replace("@ai-sdk/openai-compatible", provider);
      writeFileSync(join(session.folder, "opencode.json"), configuration);
      return Promise.resolve(session);
    },
  };
}

function qwenAgent(launcher: string): SessionAgent {
  return {
    name: "Qwen Code",
    shell: (command) => ({ name: "run_shell_command", input: { command, is_background: false } }),
    open(url, model) {
      const session = sessionOf((text, isFirst) => ({
        command: process.execPath,
        args: [launcher, "--yolo", "--auth-type", "openai", "--output-format", "json", "-p", text].concat(
          isFirst ? [] : ["--continue"],
        ),
        env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none", OPENAI_MODEL: model },
      }));
      const settings = join(session.folder, ".qwen");
      mkdirSync(settings);
      const quiet = { privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false } };
      writeFileSync(join(settings, "settings.json"), JSON.stringify(quiet));
      return Promise.resolve(session);
    },
  };
}

function opencodeCommand(): string | undefined {
  const platform = `opencode-${process.platform}-${process.arch}`;
  const modules = npmPackage(`${platform}@1.18.33`);
  const command = join(modules ?? "", platform, "bin/opencode");
  return modules !== undefined && existsSync(command) ? command : undefined;
}

function qwenLauncher(): string | undefined {
  const modules = npmPackage("@qwen-code/qwen-code@0.24.4");
  return modules === undefined ? undefined : join(modules, "@qwen-code/qwen-code/cli.js");
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A session in a home of its own, with nothing of this process's environment. Whatever else the agent would call is refused. */
function sessionOf(commandOf: (text: string, isFirst: boolean) => Command): AgentSession {
  mkdirSync(resolve(".cache"), { recursive: true });
  const home = mkdtempSync(join(resolve(".cache"), "agent-home-"));
  const folder = join(home, "work");
  mkdirSync(folder);
  const nowhere = "http://127.0.0.1:9";
  let turns = 0;
  return {
    folder,
    async turn(text) {
      const { command, args, env } = commandOf(text, turns++ === 0);
      const child = spawn(command, args, {
        cwd: folder,
        env: {
          HOME: home,
          PATH: "/usr/bin:/bin",
          HTTP_PROXY: nowhere,
          HTTPS_PROXY: nowhere,
          NO_PROXY: "127.0.0.1,localhost",
          ...env,
        },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: waitMs,
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
      const code = await new Promise((settle) => child.on("close", settle));
      return code === 0 ? output : `exit code ${String(code)}\n${output}`;
    },
    close() {
      rmSync(home, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
}
