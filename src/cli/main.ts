#!/usr/bin/env node
import { createRequire } from "node:module";
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
} from "./commands.ts";
import { serveCommand } from "./serve.ts";

const { version } = createRequire(import.meta.url)("truewire/package.json") as { version: string };

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
];
for (const add of commands) add(program);
hintAtHelp(program, "truewire");

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
