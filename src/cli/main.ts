#!/usr/bin/env node
import { createRequire } from "node:module";
import { Command } from "commander";
import { register as check } from "./check.ts";
import { register as config } from "./config.ts";
import { register as formats } from "./formats.ts";
import { register as keys } from "./keys.ts";
import { register as models } from "./models.ts";
import { register as parse } from "./parse.ts";
import { register as record } from "./record.ts";
import { register as repair } from "./repair.ts";
import { register as render } from "./render.ts";
import { register as replay } from "./replay.ts";
import { register as serve } from "./serve.ts";

// What a command needs is imported when it runs, so that `--help` is instant.
const { version } = createRequire(import.meta.url)("truewire/package.json") as { version: string };

const program = new Command("truewire")
  .description("The OpenAI API, exactly, over anything that generates text.")
  .version(version)
  .showHelpAfterError("(run truewire --help for the commands and options)");
for (const register of [serve, models, check, parse, formats, render, repair, record, replay, config, keys])
  register(program);

try {
  await program.parseAsync();
} catch (error) {
  // One sentence. TRUEWIRE_DEBUG=1 shows the stack as well.
  const shown = error instanceof Error ? (process.env.TRUEWIRE_DEBUG ? error.stack : error.message) : String(error);
  console.error(`truewire: ${shown}`);
  process.exitCode = 1;
}
