import { Command } from "commander";
import { expect, test } from "vitest";
import * as commands from "./commands.ts";
import { serveCommand } from "./serve.ts";

/** Each command, and each command of a command, with the words that lead to it. */
function all(command: Command, path: string): (readonly [path: string, command: Command])[] {
  return command.commands.flatMap((one) => {
    const own = `${path} ${one.name()}`;
    return [[own, one] as const, ...all(one, own)];
  });
}

const program = new Command("truewire");
for (const add of [serveCommand, ...Object.values(commands)]) add(program);

test.each(all(program, "truewire"))("%s --help begins with a line to copy", (path, command) => {
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  const line = help.split("\n")[0] ?? "";
  expect(line).toMatch(/^For example: /);
  expect(line).toContain(path);
});
