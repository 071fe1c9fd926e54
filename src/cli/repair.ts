import type { Command } from "commander";

/** `truewire repair`. */
export function register(program: Command): void {
  program
    .command("repair")
    .description(
      "repair a captured answer of any server: read it from stdin, write it to stdout as OpenAI would send it",
    )
    .option("--wire <form>", "the form to write: lean or exact", "lean")
    .option("--from <api>", "the API that the capture is from: chat, completions, responses, messages or auto", "auto")
    .option(
      "--jsonl",
      "many captures: one {id, endpoint, body} (or a line of truewire record) a line in, one {id, body, repairs} a line out",
    )
    .addHelpText("after", "\nThe repairs are listed on stderr.\n\n  truewire repair < broken.sse > exact.sse")
    .action(async (options: { wire: string; from: string; jsonl?: boolean }) => {
      const { repair } = await import("./repair-action.ts");
      await repair(options);
    });
}
