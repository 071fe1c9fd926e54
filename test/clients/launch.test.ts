import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isNightly } from "../support/runs.ts";
import { claudeCode } from "../support/claude-code.ts";
import { codexLauncher } from "../support/codex.ts";
import { npmPackage } from "../support/npm-package.ts";
import { builtMain } from "../support/serve.ts";
import { serveTurns } from "../support/serve-turns.ts";
import type { Asked, TurnItem, TurnsServer } from "../support/serve-turns.ts";
import { waitMs } from "../support/hang.ts";

const opencodePlatform = `opencode-${process.platform}-${process.arch}`;
// What is run at night only is downloaded at night only.
const opencodeModules = isNightly ? npmPackage(`${opencodePlatform}@1.18.33`) : undefined;
const geminiModules = isNightly ? npmPackage("@google/gemini-cli@0.61.0") : undefined;

/** The files of the real agents; undefined where one cannot be had. */
const installed: Readonly<Record<string, string | undefined>> = {
  codex: codexLauncher(),
  claude: claudeCode(),
  gemini: geminiModules && join(geminiModules, "@google/gemini-cli/bundle/gemini.js"),
  opencode: opencodeModules && join(opencodeModules, opencodePlatform, "bin/opencode"),
};

const program = `scripted=${resolve("test/fixtures/turns-program.js")}`;
const nowhere = "http://127.0.0.1:9";

let compiled: string;
let root: string;
let server: TurnsServer | undefined;
beforeAll(() => {
  compiled = mkdtempSync(join(tmpdir(), "truewire-compiled-"));
});
afterAll(() => rmSync(compiled, { recursive: true, force: true }));
beforeEach(() => {
  mkdirSync(resolve(".cache"), { recursive: true });
  root = mkdtempSync(join(resolve(".cache"), "launch-"));
  for (const name of ["bin", "home", "work", "cache/truewire", "tmp"]) mkdirSync(join(root, name), { recursive: true });
  // What V8 has compiled for one test is used by the others.
  symlinkSync(compiled, join(root, "cache/truewire/compiled"));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(root, { recursive: true, force: true });
});

/** Starts `truewire launch` with a home, a cache and a PATH of its own. Proxies refuse whatever else the agent would call. */
function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn(process.execPath, [builtMain, "launch", ...args], {
    cwd: join(root, "work"),
    env: {
      HOME: join(root, "home"),
      XDG_CACHE_HOME: join(root, "cache"),
      TMPDIR: join(root, "tmp"),
      PATH: `${join(root, "bin")}:${dirname(process.execPath)}:/usr/bin:/bin`,
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      TURNS: "[]",
      ASKED: join(root, "asked.jsonl"),
      ...env,
    },
    stdio: ["pipe", "pipe", "pipe"],
    timeout: waitMs,
  });
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function end(child: ChildProcess): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout, stderr };
}

function launch(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended> {
  const child = start(args, env);
  child.stdin?.end();
  return end(child);
}

/** Puts a shell script on the PATH in place of an agent. */
function fakeAgent(name: string, script: string): void {
  writeFileSync(join(root, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** The content of every file below a folder, by its path. */
function snapshot(folder: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (statSync(join(folder, path)).isFile()) files[path] = readFileSync(join(folder, path), "base64");
  }
  return files;
}

const asked = (): Asked[] =>
  readFileSync(join(root, "asked.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Asked);

/** A user's own configuration, with another provider and other models; its settings must not win. */
const usersFiles: Readonly<Record<string, string>> = {
  ".codex/config.toml":
    'model = "gpt-5"\nmodel_provider = "mine"\n[model_providers.mine]\nname = "M"\nbase_url = "http://127.0.0.1:9"\n',
  ".codex/auth.json": '{"OPENAI_API_KEY":"sk-mine"}',
  ".codex/AGENTS.md": "Mine.\n",
  ".claude.json": '{"numStartups":7}',
  ".claude/settings.json": '{"model":"opus","env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9"}}',
  ".gemini/settings.json": '{"security":{"auth":{"selectedType":"oauth-personal"}},"model":{"name":"gemini-mine"}}',
  // opencode adds `$schema` where it is missing, at each start.
  ".config/opencode/opencode.json":
    '{"$schema":"https://opencode.ai/config.json","model":"anthropic/claude-opus-5","username":"me"}',
  ".local/share/opencode/auth.json": '{"anthropic":{"type":"api","key":"sk-mine"}}',
  ".local/share/opencode/opencode.db": "",
};

const runs: readonly (readonly [name: string, args: readonly string[], tool: TurnItem])[] = [
  [
    "codex",
    ["exec", "--strict-config", "--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', "Count."],
    { type: "tool-call", name: "exec_command", arguments: { cmd: "wc -l < notes.txt" } },
  ],
  [
    "claude",
    ["-p", "Count.", "--allowedTools", "Bash"],
    { type: "tool-call", name: "Bash", arguments: { command: "wc -l < notes.txt", description: "Count" } },
  ],
  [
    "opencode",
    ["run", "Count."],
    { type: "tool-call", name: "bash", arguments: { command: "wc -l < notes.txt", description: "Count" } },
  ],
  [
    "gemini",
    ["--prompt", "Count.", "--yolo", "--skip-trust"],
    { type: "tool-call", name: "run_shell_command", arguments: { command: "wc -l < notes.txt", description: "Count" } },
  ],
];

describe.each(runs)("the real %s", (name, args, call) => {
  const file = installed[name];
  const isRun = isNightly || name === "codex" || name === "claude";
  if (!isRun) console.log(`skipped: the real ${name} is launched at night only (TRUEWIRE_RUNS)`);
  const test_ = isRun && file !== undefined && existsSync(file) ? test : test.skip;
  test_("runs a tool and ends, and no file of the user has changed", async () => {
    symlinkSync(file ?? "", join(root, "bin", name));
    const home = join(root, "home");
    for (const [path, text] of Object.entries(usersFiles)) {
      mkdirSync(dirname(join(home, path)), { recursive: true });
      writeFileSync(join(home, path), text);
    }
    const before = snapshot(home);
    writeFileSync(join(root, "work", "notes.txt"), "first\nsecond\nthird\n");
    const TURNS = JSON.stringify([[call], ["Three ", "lines."]]);
    const { code, stdout, stderr } = await launch([name, program, "--", ...args], { TURNS });
    expect([code, stdout], stderr).toEqual([0, expect.stringContaining("Three lines.")]);
    const withTools = asked().filter(({ tools }) => tools !== undefined);
    expect(JSON.stringify(withTools.at(-1)?.messages.at(-1))).toMatch(/\D3\\n|\b3\b/);
    expect(new Set(asked().map(({ model }) => model))).toEqual(new Set(["scripted"]));
    // opencode has no setting for the folder of its logs and locks.
    const own = /^\.(local\/(share|state)|cache|config)\/opencode\//;
    const added = (path: string): boolean => name === "opencode" && !(path in before) && own.test(path);
    expect(Object.fromEntries(Object.entries(snapshot(home)).filter(([path]) => !added(path)))).toEqual(before);
    // The server has ended, and its log is not kept.
    expect(readdirSync(join(root, "tmp")).filter((each) => each.startsWith("truewire-launch"))).toEqual([]);
  });
});

test("the agent's arguments, exit code and files", async () => {
  fakeAgent("codex", 'echo "$CODEX_HOME $TRUEWIRE_CLIENT_KEY"; for each; do echo "<$each>"; done; exit 7');
  const { code, stdout } = await launch([
    "codex",
    program,
    "--log-level",
    "debug",
    "--",
    "exec",
    "--help",
    "two words",
  ]);
  const folder = join(root, "cache/truewire/launch/codex");
  expect(code).toBe(7);
  const [first, ...rest] = stdout.trimEnd().split("\n");
  expect(first).toBe(`${folder} none`);
  expect(rest.slice(0, 2)).toEqual(["<-c>", '<model="scripted">']);
  expect(rest.slice(-3)).toEqual(["<exec>", "<--help>", "<two words>"]);
  expect(JSON.parse(readFileSync(join(folder, "truewire-models.json"), "utf8"))).toMatchObject({
    models: [{ slug: "scripted", shell_type: "unified_exec" }],
  });
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test("it ends by the agent's signal, and passes signals on to the agent", async () => {
  fakeAgent("claude", "kill -KILL $$");
  server = await serveTurns([]);
  const url = ["claude", "--url", server.url];
  expect(await launch(url)).toMatchObject({ code: null, signal: "SIGKILL" });
  const trap = "process.once('SIGTERM', () => process.stdout.write('trapped\\n', () => process.exit(3)))";
  fakeAgent("claude", `exec node -e "${trap}; setInterval(() => {}, 1000); console.log('ready')"`);
  const child = start(url);
  child.stdout?.once("data", () => child.kill("SIGTERM"));
  expect(await end(child)).toMatchObject({ code: 3, stdout: "ready\ntrapped\n" });
});

test("the server that it started ends with it, also when it is killed", async () => {
  fakeAgent("claude", 'echo "$ANTHROPIC_BASE_URL"; read line');
  const child = start(["claude", program]);
  const [said] = (await once(child.stdout ?? child, "data")) as [Buffer];
  const url = String(said).trim();
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  const ended = end(child);
  child.kill("SIGKILL");
  child.stdin?.end();
  await ended;
  for (let answers = true; answers;)
    answers = await fetch(`${url}/health/live`).then(
      () => true,
      () => false,
    );
});

test.skipIf(process.platform !== "linux")("a server that is still starting ends with it", async () => {
  fakeAgent("claude", "echo started");
  const own = join(root, "own-program.js");
  symlinkSync(resolve("test/fixtures/turns-program.js"), own);
  const servers = (): string[] =>
    readdirSync("/proc").filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return command.includes(`serve --port 0 ${own}`);
      } catch {
        return false;
      }
    });
  const child = start(["claude", own]);
  const ended = end(child);
  await expect.poll(servers, { interval: 1 }).toHaveLength(1);
  child.kill("SIGKILL");
  await ended;
  await expect.poll(servers).toEqual([]);
});

test("--print shows the lines that do the same, without the key, and starts nothing", async () => {
  fakeAgent("claude", "env | grep -E '^(ANTHROPIC|CLAUDE)' | sort; for each; do echo \"<$each>\"; done");
  server = await serveTurns([], "--api-key", "sk-secret");
  const args = ["claude", "--url", server.url, "--", "-p", "it's"];
  const key = { TRUEWIRE_API_KEY: "sk-secret" };
  const printed = await launch([...args.slice(0, 3), "--print", ...args.slice(3)], key);
  expect(printed.code, printed.stderr).toBe(0);
  expect(printed.stdout).not.toContain("sk-secret");
  // What V8 has compiled is in this folder, too.
  const cached = readdirSync(join(root, "cache"), { recursive: true }).map(String);
  expect(cached.filter((path) => !/^truewire(?:$|.compiled)/.test(path))).toEqual([]);
  const env = { ...key, PATH: `${join(root, "bin")}:/usr/bin:/bin`, ANTHROPIC_API_KEY: "mine" };
  const byHand = execFileSync("sh", ["-c", printed.stdout], { env, encoding: "utf8" });
  rmSync(join(root, "cache/truewire"), { recursive: true });
  const { stdout } = await launch(args, { ...key, ANTHROPIC_API_KEY: "mine" });
  expect(stdout).toContain("ANTHROPIC_AUTH_TOKEN=sk-secret\n");
  expect(stdout).toContain("<it's>");
  expect(stdout).not.toContain("mine");
  expect(byHand).toBe(stdout);
});

describe("what it refuses", () => {
  test.each([
    [["codx"], "launch does not know the agent codx. Did you mean codex?"],
    [["crush", program], "Crush is not installed: there is no crush on the PATH. Install it with npm install"],
    [["claude", "--url", nowhere], `${nowhere} does not answer. Is truewire serve running there?`],
    [["claude", "--url", nowhere, program], "Expected either a running server"],
    [["claude", program, "--print"], "--print starts nothing"],
    [["claude", program, "--model", "gpt-5"], "The server has no chat model gpt-5. It has scripted."],
    [["claude", program, "--wire", "thin"], "--wire thin"],
    [["claude", "-p", "Count."], "The server did not start. Arguments of the agent follow a --.\n"],
    [["claude", "no-such-model.gguf"], "The server did not start.\n"],
  ])("%j", async (args, message) => {
    fakeAgent("claude", "echo started");
    const { code, stdout, stderr } = await launch(args);
    expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(message)]);
    // A log that says no more than the error is not kept.
    expect(readdirSync(join(root, "tmp"))).toEqual([]);
  });

  test("a server that requires a key, and one that is another program", async () => {
    fakeAgent("claude", "echo started");
    server = await serveTurns([], "--api-key", "sk-secret");
    expect((await launch(["claude", "--url", server.url])).stderr).toContain(
      `${server.url} requires a key: --api-key, or TRUEWIRE_API_KEY.`,
    );
    const { stderr } = await launch(["claude", "--url", `${server.url}/elsewhere`, "--api-key", "sk-secret"]);
    expect(stderr).toContain("/elsewhere is not a Truewire of this version.");
  });

  test("a model whose context is smaller than the agent's prompt", async () => {
    fakeAgent("claude", "echo started");
    const demo = resolve("models/demo");
    const file = readdirSync(demo).find((name) => name.endsWith(".gguf")) ?? "";
    const { code, stdout, stderr } = await launch(["claude", join(demo, file), "--gpu", "off", "--threads", "1"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("has a context of 2,048 tokens. Claude Code needs 32,768");
    expect(stderr).toContain(`truewire launch claude ${join(demo, file)} --context-size 32768`);
  });
});
