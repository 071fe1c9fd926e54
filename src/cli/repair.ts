import type { Command } from "commander";

/** `truewire repair`. */
export function register(program: Command): void {
  program
    .command("repair")
    .description("read a captured answer of any server from stdin, and write it exactly to stdout")
    .option("--wire <form>", "lean or openai", "lean")
    .option("--from <endpoint>", "chat, completions or auto", "auto")
    .option("--jsonl", "lines of {id, endpoint, body} in, lines of {id, body, repairs} out")
    .addHelpText("after", "\nWhat was mended is told on stderr.\n\n  truewire repair < broken.sse > exact.sse")
    .action(async (options: { wire: string; from: string; jsonl?: boolean }) => {
      const { repair } = await import("./repair-action.ts");
      await repair(options);
    });
}
