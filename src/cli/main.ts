#!/usr/bin/env node
import { existsSync } from "node:fs";
import * as modules from "node:module";
import { join } from "node:path";
import { Command } from "commander";
import {
  checkCommand,
  configCommand,
  doctorCommand,
  formatsCommand,
  keysCommand,
  launchCommand,
  modelsCommand,
  parseCommand,
  cacheCommand,
  recordCommand,
  renderCommand,
  repairCommand,
  replayCommand,
  serviceCommand,
} from "./commands.ts";
import { serveCommand } from "./serve.ts";

keepCompiledCode();

const { version } = modules.createRequire(import.meta.url)("truewire/package.json") as { version: string };

const program = new Command("truewire")
  .description("The OpenAI API, exactly, over anything that generates text.")
  .version(version);
const commands = [
  serveCommand,
  launchCommand,
  modelsCommand,
  checkCommand,
  doctorCommand,
  parseCommand,
  formatsCommand,
  renderCommand,
  repairCommand,
  cacheCommand,
  recordCommand,
  replayCommand,
  configCommand,
  keysCommand,
  serviceCommand,
];
for (const add of commands) add(program);
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
  const isServe = first.startsWith("-") && !["-h", "--help", "-V", "--version"].includes(first);
  await program.parseAsync(isServe ? ["serve", ...given] : given, { from: "user" });
} catch (error) {
  // One sentence. TRUEWIRE_DEBUG=1 shows the stack as well.
  const shown = error instanceof Error ? (process.env.TRUEWIRE_DEBUG ? error.stack : error.message) : String(error);
  console.error(`truewire: ${shown}`);
  process.exitCode = 1;
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
