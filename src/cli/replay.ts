import type { Command } from "commander";

/** `truewire replay`. */
export function register(program: Command): void {
  program
    .command("replay")
    .description(
      "serve captured answers again, byte for byte and with their timing: a server for tests that never varies",
    )
    .argument(
      "<files...>",
      "recordings of truewire record, HAR files, transcripts of curl -v, or the bodies of answers",
    )
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("-p, --port <number>", "the port; 0 takes any free port", "8080")
    .option("--speed <factor>", "how many times as fast as it was; max sends everything at once", "1")
    .addHelpText("after", "\nA request that is in no file is a 404 that shows the nearest one and what differs.")
    .action(async (files: string[], options: { host: string; port: string; speed: string }) => {
      const { replay } = await import("./replay-action.ts");
      await replay(files, options);
    });
}
