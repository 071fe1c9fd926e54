import { execFile } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { Command } from "commander";
import { transformSync } from "rolldown/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as truewireCommands from "../../src/serve/cli/commands.ts";
import { serveCommand } from "../../src/serve/cli/serve.ts";
import { checkConfigFile } from "../../src/serve/config/read-config-file.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { builtMain, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { readBlocks } from "./read-blocks.ts";
import type { Block } from "./read-blocks.ts";
import { isNightly } from "../support/runs.ts";
import { waitMs } from "../support/hang.ts";

/**
 * Every command and snippet of the documentation runs as printed, in the order of its page, in a folder that holds `model.gguf` (the
 * programmed model), `models/` with another one, `program.ts`, and a captured stream. Only ports differ: those that a page names are mapped to free ones.
 *
 * - `sh`: run by a shell. A line `truewire serve …`, `truewire vendor …` or `truewire replay …` starts a server, which stays up for the later blocks of the
 *   page, until another one starts. `truewire record …` starts a recorder next to it, on port 8081.
 * - `ts`: run as a module; one whose first line is `// name.ts` is kept under that name, and served if it is a program.
 * - `python`: run where Python has the official SDK.
 * - `yaml`: kept as truewire.yaml and checked.
 * - `json`: parsed.
 * - any other language is not a command. A block under `<!-- skip: reason -->` is not run, and the reason is printed; under
 *   `<!-- needs: command -->` it runs if that command is on the PATH.
 */
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name.replaceAll("\\", "/")}`)
    .toSorted(),
  ...["wire", "text", "engines", "serve", "page", "judge"].map((house) => `src/${house}/README.md`),
];
const run = promisify(execFile);

let pythonWithSdk: Promise<string | undefined> | undefined;
/** A Python that has the official SDK, which takes a second to import. */
async function findPython(): Promise<string | undefined> {
  for (const command of [resolve(".cache/python/bin/python"), "python3"]) {
    const usable = await run(command, ["-c", "import openai"]).then(
      () => true,
      () => false,
    );
    if (usable) return command;
  }
  return undefined;
}

// Within the repository, so that packages (and truewire itself) are found as in a user's project.
const root = resolve(".cache/docs-test");
let demo: RunningTruewire;
/** Servers of the programmed model that several pages start with the same arguments. */
const shared = new Map<string, RunningTruewire>();

beforeAll(async () => {
  await rm(root, { recursive: true, force: true });
  await mkdir(join(root, "bin"), { recursive: true });
  await writeFile(join(root, "bin/truewire"), `#!/bin/sh\nexec "${process.execPath}" "${builtMain}" "$@"\n`, {
    mode: 0o755,
  });
  // A status of 400 or more is a failure of every curl line.
  await writeFile(join(root, ".curlrc"), "fail-with-body\n");
  writeProgrammedModel(join(root, "model.gguf"));
  // Without a name it serves the bundled model, as the first page says.
  demo = await startTruewire(["--threads", "1", "--gpu", "off"]);
});
afterAll(async () => {
  await Promise.all([demo, ...shared.values()].map((server) => server?.stop()));
  await rm(root, { recursive: true, force: true });
});

/** Files that pages read from. */
const request = { messages: [{ role: "user", content: "Hello!" }] };
const template = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}";
const inputs: Readonly<Record<string, string>> = {
  "broken.sse":
    'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
  "request.json": JSON.stringify({ model: "demo", ...request }),
  "chat.jinja": template,
  "jobs.jsonl": `${JSON.stringify({ id: 1, template_source: template, ...request })}\n`,
};

const runnable = new Set(["sh", "ts", "python", "yaml", "json"]);

/** The runnable blocks of each page that has some. */
const blocksOf = new Map<string, readonly Block[]>();
for (const page of pages) {
  const blocks = readBlocks(page, readFileSync(page, "utf8")).filter(({ language }) => runnable.has(language));
  if (blocks.length > 0) blocksOf.set(page, blocks);
}

test.each(pages)("every link of %s leads somewhere", (page) => {
  const missing = [...readFileSync(page, "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !existsSync(join(dirname(page), target)));
  expect(missing).toEqual([]);
});

/** The places in a page that a link can name: GitHub makes them of its headings. */
function anchorsOf(page: string): Set<string> {
  const text = readFileSync(page, "utf8").replaceAll(/^```[^]*?^```/gm, "");
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#{1,6} (.*)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const name = words.replaceAll(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-");
    let anchor = name;
    for (let nth = 1; anchors.has(anchor); nth++) anchor = `${name}-${nth}`;
    anchors.add(anchor);
  }
  return anchors;
}

test.each(pages)("every place in a page that %s links to is there", (page) => {
  const missing = [...readFileSync(page, "utf8").matchAll(/\]\((?!https?:)([^)#\s]*\.md)?#([^)\s]+)\)/g)]
    .filter(
      ([, target, anchor = ""]) => !anchorsOf(target === undefined ? page : join(dirname(page), target)).has(anchor),
    )
    .map(([link]) => link);
  expect(missing).toEqual([]);
});

/** Places of this repository that a page names in backticks: `src/serve/server/handle.ts`, or without `src/`. The names of rules look alike. */
const place = /`((?:src|test|scripts|bench|deploy|examples|[a-z]+)\/[\w./-]+\.(?:ts|tsx|mjs|yaml|md|service|json))`/g;
test.each(pages)("every file that %s names is there", (page) => {
  const missing = [...readFileSync(page, "utf8").matchAll(place)]
    .map(([, path = ""]) => path)
    .filter(
      (path) =>
        !/[A-Z]{3}/.test(path) &&
        !["", "src/", "src/page/", `${dirname(page)}/`].some((root) => existsSync(root + path)),
    );
  expect(missing).toEqual([]);
});

const { scripts } = JSON.parse(readFileSync("package.json", "utf8"));
test.each(pages)("every script of npm that %s names is there", (page) => {
  const names = [...readFileSync(page, "utf8").matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = ""]) => name);
  expect(names.filter((name) => !(name in scripts))).toEqual([]);
});

/** Commands with subcommands of their own. */
const groups = new Set(["cache", "config", "keys", "models", "service"]);
const program = new Command("truewire");
for (const add of [...Object.values(truewireCommands), serveCommand]) add(program);
/** The help of a command such as `models pull`; undefined: there is no such command. */
function helpOf(name: string): string | undefined {
  let command: Command | undefined = program;
  for (const word of name.split(" ")) command = command?.commands.find((one) => one.name() === word);
  return command?.helpInformation();
}

// Blocks that are not run would otherwise keep commands and options that are gone.
test.each(pages)("every command and option of truewire that %s shows is there", (page) => {
  const text = readFileSync(page, "utf8").replaceAll("\\\n", " ");
  const inline = [...text.matchAll(/`(truewire [^`\n]*)`/g)].map(([, code = ""]) => code);
  const blocks = readBlocks(page, text).filter(({ language }) => language === "sh");
  const lines = blocks.flatMap((block) => block.text.split("\n")).filter((line) => line.startsWith("truewire "));
  const wrong: string[] = [];
  for (const line of [...inline, ...lines]) {
    const [, first = "", second = "", rest = ""] = /^truewire ([a-z]+)(?: ([a-z]+))?([^|>#]*)/.exec(line) ?? [];
    if (first === "") continue;
    const help = helpOf(groups.has(first) && second !== "" ? `${first} ${second}` : first);
    if (help === undefined) {
      wrong.push(line);
      continue;
    }
    const known = first === "launch" || first === "service" ? help + helpOf("serve") : help;
    const own = rest.replace(/ -- .*/, "");
    for (const [, option = ""] of own.matchAll(/(?:^|\s)(--[a-z][a-z-]*)/g))
      if (!new RegExp(`${option}\\b(?!-)`).test(known)) wrong.push(`${option} in: ${line}`);
  }
  expect(wrong).toEqual([]);
});

test("every folder of tests is in CONTRIBUTING.md", () => {
  const text = readFileSync("CONTRIBUTING.md", "utf8");
  const folders = readdirSync("test", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name.split(/[\\/]/)[0] ?? ""}`);
  expect([...new Set(folders)].filter((folder) => !text.includes(`\`${folder}\``))).toEqual([]);
});

test("every setting of truewire.yaml is in docs/configuration.md or docs/keys.md", () => {
  const text = readFileSync("docs/configuration.md", "utf8") + readFileSync("docs/keys.md", "utf8");
  const names = new Set<string>();
  const collect = (schema: unknown): void => {
    if (typeof schema !== "object" || schema === null) return;
    for (const [key, value] of Object.entries(schema)) {
      // The members of a format are described in src/text/formats/format.ts. Adaptations have a test of their own.
      if (key === "toolFormat" || key === "adapt") continue;
      if (key === "properties") for (const name of Object.keys(value as object)) names.add(name);
      collect(value);
    }
  };
  collect(JSON.parse(readFileSync("truewire.schema.json", "utf8")));
  expect(names.size).toBeGreaterThan(80);
  expect([...names].filter((name) => !new RegExp(`\`[^\`]*\\b${name}\\b[^\`]*\``).test(text))).toEqual([]);
});

/** A server of the programmed model in this folder, or the one that another page has started with these arguments. */
async function startShared(name: string, cwd: string): Promise<RunningTruewire> {
  const running =
    shared.get(name) ?? (await startTruewire([...name.split(" "), "--threads", "1", "--gpu", "off"], { cwd }));
  shared.set(name, running);
  return running;
}

/** Hundreds of answers: `test/check/own-server.test.ts` has them. */
const hasAllRules = /^truewire check \S+$/m;
/** Dozens of answers: by day from the programmed model in place of the demo model. */
const hasManyAnswers = /^truewire check http/m;

describe.each([...blocksOf])("%s", (page, blocks) => {
  const folder = join(root, page.replaceAll("/", "-"));
  let server: RunningTruewire | undefined;
  let recorder: RunningTruewire | undefined;

  beforeAll(async () => {
    await mkdir(folder, { recursive: true });
    for (const { text } of blocks) {
      for (const [model] of text.matchAll(/(?<![\w./-])[\w.-]+\.gguf/g))
        copyFileSync(join(root, "model.gguf"), join(folder, model));
    }
    await mkdir(join(folder, "models"), { recursive: true });
    copyFileSync(join(root, "model.gguf"), join(folder, "models/small.gguf"));
    await mkdir(join(folder, "examples"), { recursive: true });
    copyFileSync("examples/echo.ts", join(folder, "examples/echo.ts"));
    await writeFile(join(folder, "program.ts"), "export default () => 'Hello from a program.';\n");
    for (const [name, text] of Object.entries(inputs)) await writeFile(join(folder, name), text);
  });
  const stopServer = async (): Promise<void> => {
    if (![...shared.values()].some((one) => one === server)) await server?.stop();
    server = undefined;
  };
  afterAll(() => Promise.all([stopServer(), recorder?.stop()]));

  for (const block of blocks) {
    const { language, line, text } = block;
    const skip =
      block.skip ?? (!isNightly && hasAllRules.test(text) ? "all of truewire check is run at night" : undefined);
    const name = `line ${line} (${language})`;
    if (skip !== undefined) {
      console.log(`skipped: ${page}:${line}: ${skip}`);
      test.skip(name, () => {});
      continue;
    }
    test(name, async ({ skip: skipNow }) => {
      if (language === "sh") await runShell(block);
      else if (language === "ts") await runTypeScript(block);
      else if (language === "yaml") await checkConfiguration(block);
      else if (language === "json") JSON.parse(block.text);
      else if (!(await runPython(block))) {
        console.log(`skipped: ${page}:${line}: Python with the official SDK is not installed`);
        skipNow();
      }
    });
  }

  /**
   * Replaces the addresses of a page: 8080 is its own server, or for the model "demo" the one of `npm start`; 9000 its own server; 8081
   * the recorder; 11434 Ollama.
   */
  function onFreePorts(text: string, own = server ?? demo): string {
    return text
      .replaceAll(/https?:\/\/(?:127\.0\.0\.1|localhost):8080/g, (text.includes("demo") ? demo : own).url)
      .replaceAll(/https?:\/\/(?:127\.0\.0\.1|localhost):9000/g, own.url)
      .replaceAll("http://127.0.0.1:8081", recorder?.url ?? "http://127.0.0.1:8081")
      .replaceAll(/(?:http:\/\/)?localhost:11434/g, demo.url);
  }

  function environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      PATH: `${join(root, "bin")}:${process.env.PATH ?? ""}`,
      CURL_HOME: root,
      TRUEWIRE_KEY: "sk-example-0123456789",
      TOKEN_SECRET: "a secret of the example",
      // Pages mean the server that they started.
      TRUEWIRE_URL: (server ?? demo).url,
    };
  }

  async function runShell({ text, line }: Block): Promise<void> {
    // It would change this repository's own packages.
    if (/^npm (install|i|ci|cit)\b/m.test(text))
      throw new Error(`${page}:${line}: mark what installs packages with skip`);
    const commands: string[] = [];
    for (const command of text.replaceAll("\\\n", " ").split("\n")) {
      const [, subcommand, args] = /^(?:npx )?truewire (serve|vendor|record|replay)\b([^#]*)/.exec(command) ?? [];
      if (subcommand !== undefined) await startServer(subcommand, args ?? "");
      else commands.push(command);
    }
    if (commands.join("").trim() === "") return;
    const isOfProgrammed = !isNightly && server === undefined && hasManyAnswers.test(text);
    const own = isOfProgrammed ? await startShared("model.gguf", root) : undefined;
    await run("sh", ["-e", "-c", onFreePorts(commands.join("\n"), own)], {
      cwd: commandFolder(text),
      env: environment(),
      timeout: waitMs,
    });
  }

  /** Commands of npm belong to this repository, all others to the page's folder. */
  function commandFolder(text: string): string {
    return /^(npm|npx|node) /m.test(text) ? resolve(".") : folder;
  }

  async function startServer(command: string, text: string): Promise<void> {
    const args = onFreePorts(text)
      .replace(/--port \d+/, "")
      .split(/\s+/)
      .filter((argument) => argument !== "");
    const name = args.join(" ");
    const isShared = /^(?:[\w-]+=)?[\w-]+\.gguf(?: --context-size \d+)?$/.test(name);
    const local = args.some((argument) => argument.endsWith(".gguf")) ? ["--threads", "1", "--gpu", "off"] : [];
    const start = (): Promise<RunningTruewire> =>
      startTruewire([...args, ...local, "--port", "0"], {
        command,
        cwd: folder,
        env: { TRUEWIRE_KEY: "sk-example-0123456789" },
      });
    if (command === "record") {
      await recorder?.stop();
      recorder = await start();
      return;
    }
    await stopServer();
    server = command === "serve" && isShared ? await startShared(name, folder) : await start();
  }

  async function runTypeScript({ text, line }: Block): Promise<void> {
    const named = /^\/\/ ([\w./-]+\.ts)\n/.exec(text)?.[1];
    const file = join(folder, named ?? `block-${line}.ts`);
    const code = onFreePorts(text);
    await writeFile(file, code);
    if (/^export default (?!defineHook)/m.test(text)) {
      const program = await startTruewire([file]);
      await program.stop();
    } else if (named === undefined) {
      // Node 20 does not strip types, and a loader that does would take most of the time.
      const script = file.replace(/ts$/, "mjs");
      await writeFile(script, transformSync(file, code).code);
      await run(process.execPath, [script], { cwd: folder, env: environment(), timeout: waitMs });
    }
  }

  async function checkConfiguration({ text }: Block): Promise<void> {
    await writeFile(join(folder, "truewire.yaml"), onFreePorts(text).replace(/^port: .*$/m, "port: 0"));
    // What `truewire config check` does.
    await checkConfigFile(join(folder, "truewire.yaml"), environment());
  }

  async function runPython({ text }: Block): Promise<boolean> {
    const command = await (pythonWithSdk ??= findPython());
    if (command !== undefined) await run(command, ["-c", onFreePorts(text)], { timeout: waitMs });
    return command !== undefined;
  }
});
