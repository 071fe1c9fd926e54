import type { Command } from "commander";

/** `truewire formats`: what is known of how models write. */
export function register(program: Command): void {
  program
    .command("formats")
    .description("List the formats of tool calls and reasoning that are known, with a sample of each.")
    .option("--json", "print the descriptions themselves, as a configuration file takes them")
    .action(async (options: { readonly json?: true }) => {
      const { listFormats } = await import("./formats-action.ts");
      process.stdout.write(listFormats(options.json === true));
    });
}
