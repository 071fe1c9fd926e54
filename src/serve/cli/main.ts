#!/usr/bin/env node
import { existsSync } from "node:fs";
import * as modules from "node:module";
import { join } from "node:path";
import { Command } from "commander";
import {
  batchCommand,
  betweenCommand,
  checkCommand,
  completionCommand,
  configCommand,
  doctorCommand,
  formatsCommand,
  keysCommand,
  launchCommand,
  librariesCommand,
  modelsCommand,
  parseCommand,
  cacheCommand,
  recordCommand,
  renderCommand,
  repairCommand,
  replayCommand,
  serviceCommand,
  vendorCommand,
} from "./commands.ts";
import { nearest } from "../../wire/core/nearest.ts";
import { serveCommand } from "./serve.ts";

keepCompiledCode();

const { version } = modules.createRequire(import.meta.url)("truewire/package.json") as { version: string };

const program = new Command("truewire")
  .description(
    "OpenAI's Chat Completions, Responses and Completions, Anthropic's Messages, Gemini's and Ollama's APIs, exactly, over anything that generates text.",
  )
  .version(version);
/** The commands by what they are for, as the help lists them. */
const groups = {
  "Serve and use:": [
    serveCommand,
    launchCommand,
    batchCommand,
    modelsCommand,
    librariesCommand,
    keysCommand,
    configCommand,
    serviceCommand,
  ],
  "Test servers:": [
    doctorCommand,
    checkCommand,
    betweenCommand,
    vendorCommand,
    recordCommand,
    replayCommand,
    repairCommand,
  ],
  "Look inside:": [renderCommand, parseCommand, formatsCommand, cacheCommand, completionCommand],
};
for (const [heading, commands] of Object.entries(groups)) {
  program.commandsGroup(heading);
  for (const add of commands) add(program);
}
const helpCommand = new Command("help").argument("[command]").description("display help for a command");
program.addHelpCommand(helpCommand.helpGroup("Look inside:"));
program.addHelpText(
  "after",
  `
Exit codes:
                  0                  1                       2
  check, between  no errors          errors                  nothing could be examined
  doctor          no problems        problems                nothing could be examined
  batch           all lines done     a line has an error     (130: Ctrl+C)
  cache why       no cache miss      a cache miss
  service status  it runs            it does not run
  launch          the exit code of the agent
  all others      done               it failed

Without a command, it serves: truewire --port 9000 is truewire serve --port 9000.`,
);
hintAtHelp(program, "truewire");

// The reader of a pipe has seen enough (`| head`). `serve` has a listener of its own, and continues.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  if (process.stdout.listenerCount("error") === 1) process.exit();
});

try {
  // Without a command it serves; only these options are its own.
  const given = process.argv.slice(2);
  const [first = "-"] = given;
  const names = ["help", ...program.commands.map((command) => command.name())];
  // A typing error gets commander's own hint.
  if (!first.startsWith("-") && !names.includes(first) && nearest(first, names) === undefined)
    throw new Error(await unknownCommand(first));
  const isServe = first.startsWith("-") && !["-h", "--help", "-V", "--version"].includes(first);
  await program.parseAsync(isServe ? ["serve", ...given] : given, { from: "user" });
} catch (error) {
  // One sentence. TRUEWIRE_DEBUG=1 shows the stack as well.
  const shown = error instanceof Error ? (process.env.TRUEWIRE_DEBUG ? error.stack : error.message) : String(error);
  console.error(`truewire: ${shown}`);
  process.exitCode = 1;
}

/** What to do in place of `truewire NAME`, where the name is that of a model, a file or a server. */
async function unknownCommand(name: string): Promise<string> {
  const { mistakeOfTarget } = await import("./target-mistakes.ts");
  const next = mistakeOfTarget(name);
  const hint =
    next === undefined
      ? `To serve it: truewire serve ${name}.`
      : next.replace(/^The model file .* does not exist\. /, "");
  return `There is no command ${name}. ${hint}\n(run truewire --help for the commands)`;
}

/** Lets each command's errors name the help of that command. */
function hintAtHelp(command: Command, path: string): void {
  const what = command.commands.length > 0 ? "the commands and options" : "its arguments and options";
  command.showHelpAfterError(`(run ${path} --help for ${what})`);
  for (const each of command.commands) hintAtHelp(each, `${path} ${each.name()}`);
}

/**
 * Lets Node keep the compiled code of what is imported from now on, for the next start. Does nothing before Node 22.8, and without a folder for
 * caches: Node 24 hangs if it cannot create one (`fs.mkdirSync("/proc/none/a", { recursive: true })`).
 */
function keepCompiledCode(): void {
  const { XDG_CACHE_HOME, LOCALAPPDATA, HOME } = process.env;
  const caches = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && join(HOME, ".cache"));
  const { enableCompileCache } = modules as { enableCompileCache?: (folder: string) => unknown };
  if (caches && existsSync(caches)) enableCompileCache?.(join(caches, "truewire", "compiled"));
}
