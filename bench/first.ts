import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { availableParallelism, homedir, loadavg, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { chromium } from "playwright-core";
import { claudeCode } from "../test/support/claude-code.ts";
import { findChromium } from "../test/support/chromium.ts";
import { codexLauncher } from "../test/support/codex.ts";
import { ollama } from "../test/doubles/ollama.ts";
import { listOf, objectOf, startChat } from "../test/doubles/chat-server.ts";
import type { Json, Turn } from "../test/doubles/chat-server.ts";
import { freePort } from "../test/support/redis-server.ts";

/**
 * A stopwatch for the first five minutes: the commands that a person types, and the seconds until each goal is reached, from a machine that
 * has Node, the agent, a browser and a clone of this repository (its last commit), with an empty home and an empty npm cache.
 *
 *     npm run bench first
 *
 * Goals: the first words of an answer on the page; Claude Code and Codex read a file with a tool, over a server that refuses what Ollama
 * refuses and is found on this machine; `truewire doctor` names the worst findings of a broken server; the first answer of the package that is
 * installed globally, and of the archive with Node inside, each with a home and an npm cache of its own. What cannot be run here (no browser,
 * no agent) is said and left out. Nothing but npm uses the network.
 */

const root = mkdtempSync(join(tmpdir(), "truewire-first-"));
const clone = join(root, "truewire");
const prefix = join(root, "prefix");
const work = join(root, "work");
const bin = join(root, "bin");
for (const folder of [clone, prefix, work, bin]) mkdirSync(folder, { recursive: true });
writeFileSync(join(work, "notes.txt"), "first\nsecond\nthird\n");

/** As after a login with a new home: nothing of `npm run`, and the registry that npm is configured for. */
function loggedIn(home: string, folders: readonly string[], globals: string): NodeJS.ProcessEnv {
  mkdirSync(home, { recursive: true });
  return {
    HOME: home,
    PATH: [...folders, "/usr/bin", "/bin"].join(delimiter),
    npm_config_cache: join(home, "npm-cache"),
    npm_config_prefix: globals,
    npm_config_userconfig: join(homedir(), ".npmrc"),
    NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS,
  };
}
const ofNode = dirname(process.execPath);
const environment = loggedIn(join(root, "home"), [join(prefix, "bin"), bin, ofNode], prefix);

interface Step {
  readonly command: string;
  readonly seconds: number;
}

interface Goal {
  readonly name: string;
  readonly steps: readonly Step[];
  /** What was seen. */
  readonly seen: string;
}

const goals: Goal[] = [];
try {
  const archive = execFileSync("git", ["archive", "HEAD"], { maxBuffer: 2 ** 30 });
  execFileSync("tar", ["-x", "-C", clone], { input: archive });
  const install = await timed("npm ci", clone);
  await page(install);
  rmSync(join(clone, "dist"), { recursive: true, force: true });
  const onPath = [install, await timed("npm run build", clone), await timed("npm link", clone)];
  await agents(onPath);
  await broken(onPath);
  await installed();
  await unpacked();
  print();
} finally {
  rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

async function page(install: Step): Promise<void> {
  const executablePath = findChromium();
  if (executablePath === undefined) return void console.log("skipped: no Chromium (CHROME_PATH, or on the PATH)");
  const begun = performance.now();
  const server = start(`npm start -- --port ${await freePort()}`, clone);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    const [, url = ""] = await said(server, /^(http:\/\/\S+) is the page/m);
    const tab = await browser.newPage();
    await tab.goto(url);
    await tab.getByRole("button", { name: "Just ask" }).click();
    const words = tab.locator(".answer .said").filter({ hasText: /\S/ }).first();
    await words.waitFor();
    const seconds = (performance.now() - begun) / 1000;
    const seen = (await words.textContent()) ?? "";
    goals.push({ name: "the first words on the page", steps: [install, { command: "npm start", seconds }], seen });
  } finally {
    await browser.close();
    await stop(server);
  }
}

async function agents(onPath: readonly Step[]): Promise<void> {
  // Reads the file with the agent's own tool, then repeats what the tool found.
  const turn = (body: Json): Turn => {
    const last = listOf(body["messages"]).at(-1) ?? {};
    if (last["role"] === "tool")
      return `It has ${/\D3(?:\\+n|"|\s)/.test(JSON.stringify(last["content"])) ? 3 : "?"} lines.`;
    const names = new Set(listOf(body["tools"]).map((tool) => objectOf(tool["function"])["name"]));
    const command = "wc -l < notes.txt";
    if (names.has("Bash")) return { calls: [{ name: "Bash", input: { command, description: "Count the lines" } }] };
    return names.has("exec_command") ? { calls: [{ name: "exec_command", input: { cmd: command } }] } : "Hello.";
  };
  const server = await startChat(ollama(), turn, ["qwen3:8b"]);
  const at = `localhost:${new URL(server.url).port}`;
  const question = '"How many lines has notes.txt?"';
  const commands = [
    ["Claude Code", claudeCode(), `truewire launch claude ${at} -- -p ${question} --allowedTools Bash`],
    // Its sandbox needs rights that containers do not have.
    [
      "Codex",
      codexLauncher(),
      `truewire launch codex ${at} -- exec --skip-git-repo-check --sandbox danger-full-access ${question}`,
    ],
  ] as const;
  try {
    for (const [name, file, command] of commands) {
      if (file === undefined || !existsSync(file)) continue;
      symlinkSync(file, join(bin, name === "Codex" ? "codex" : "claude"));
      const { text, ...step } = await timed(command, work);
      if (!text.includes("It has 3 lines.")) throw new Error(`${name} did not work:\n${text}`);
      goals.push({ name: `${name} works over Ollama`, steps: [...onPath, step], seen: "It has 3 lines." });
    }
  } finally {
    await server.close();
  }
}

async function broken(onPath: readonly Step[]): Promise<void> {
  const server = createServer((request, response) => {
    if (request.method === "GET" && request.url === "/v1/models")
      return response.end(JSON.stringify({ object: "list", data: [{ id: "m", object: "model", owned_by: "me" }] }));
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      if (request.url !== "/v1/chat/completions") return response.writeHead(404).end();
      const isStream = text.includes('"stream":true');
      const call = '<tool_call>{"name":"get_weather","arguments":{"city":"Paris"}}</tool_call>';
      const content = text.includes('"tools"') ? call : "Hello.";
      // No id, no index, no usage, no finish_reason, no [DONE].
      if (!isStream) return response.end(JSON.stringify({ choices: [{ message: { content } }] }));
      response.setHeader("content-type", "text/event-stream");
      response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
      return response.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const command = `truewire doctor localhost:${(server.address() as AddressInfo).port}`;
    const { text, ...step } = await timed(command, work);
    const rule = /^ *problem +(text is lost.*|the stream cannot.*|[a-z ]+: .*)$/m.exec(text)?.[1];
    if (rule === undefined) throw new Error(`doctor found nothing:\n${text}`);
    goals.push({ name: "the worst finding of a broken server", steps: [...onPath, step], seen: rule });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The package, as `npm install --global truewire` will install it. Making it is not measured. */
async function installed(): Promise<void> {
  const own = join(root, "packaged");
  const globals = join(own, "prefix");
  const env = loggedIn(own, [join(globals, "bin"), ofNode], globals);
  await timed("npm pack", clone);
  const steps = [
    await timed(`npm install --global ${clone}/truewire-?.?.?.tgz`, own, env),
    await timed("truewire libraries install", own, env),
  ];
  await firstAnswer("the first answer of the package", steps, "truewire serve", own, env);
}

/** The archive with Node inside, started where there is no Node. Making it is not measured. */
async function unpacked(): Promise<void> {
  const own = join(root, "archived");
  const env = loggedIn(own, [], own);
  await timed("npm run bundle", clone);
  const steps = [await timed(`tar -xzf ${clone}/truewire-*-*.tgz --strip-components=1`, own, env)];
  await firstAnswer("the first answer of the archive", steps, "./truewire serve", own, env);
}

/** Starts a server with the demo model, and asks it as soon as it says where it listens. */
async function firstAnswer(
  name: string,
  steps: readonly Step[],
  command: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const begun = performance.now();
  const server = start(`${command} --no-discovery --port ${await freePort()}`, cwd, env);
  try {
    const [, url = ""] = await said(server, /^(http:\/\/\S+) is the page/m);
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "What is the capital of France?" }], model: "demo" }),
    });
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    const seconds = (performance.now() - begun) / 1000;
    goals.push({ name, steps: [...steps, { command, seconds }], seen: choices[0]?.message.content ?? "" });
  } finally {
    await stop(server);
  }
}

/** Runs a command line to its end. `text`: what it wrote. Rejects if it fails, except for doctor, whose 1 means problems. */
async function timed(command: string, cwd: string, env = environment): Promise<Step & { readonly text: string }> {
  console.error(`$ ${command}`);
  const begun = performance.now();
  const child = start(command, cwd, env);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const [code] = (await once(child, "close")) as [number | null];
  const seconds = (performance.now() - begun) / 1000;
  if (code !== 0 && !(code === 1 && command.startsWith("truewire doctor")))
    throw new Error(`${command} ended with ${code}:\n${text}`);
  return { command, seconds, text };
}

function start(command: string, cwd: string, env = environment): ChildProcess {
  return spawn("sh", ["-c", `exec ${command}`], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
}

/** Waits until a process has written a text. */
async function said(child: ChildProcess, wanted: RegExp): Promise<RegExpExecArray> {
  let text = "";
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      text += String(chunk);
      const found = wanted.exec(text);
      if (found) resolve(found);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("close", () => reject(new Error(`it ended:\n${text}`)));
  });
}

/** Stops a command and what it has started. */
async function stop(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  process.kill(-(child.pid ?? 0), "SIGTERM");
  await closed;
}

function print(): void {
  const total = (steps: readonly Step[]): string => steps.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(1);
  console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}\n`);
  console.log("| to | commands | seconds | of which installing | seen |\n| --- | --- | --- | --- | --- |");
  for (const { name, steps, seen } of goals) {
    const lines = steps.map(({ command, seconds }) => `\`${command}\` ${seconds.toFixed(1)}`).join("<br>");
    console.log(`| ${name} | ${lines} | ${total(steps)} | ${total(steps.slice(0, -1))} | ${seen.slice(0, 160)} |`);
  }
}
