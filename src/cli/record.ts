import type { Command } from "commander";

/** `truewire record`. */
export function register(program: Command): void {
  program
    .command("record")
    .description("sit in front of any server, pass everything on, and keep each request with its answer in a file")
    .argument("<url>", "the server's base URL, such as http://localhost:11434/v1")
    .option("-o, --output <file>", "the file that the exchanges are added to", "recording.jsonl")
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("-p, --port <number>", "the port; 0 takes any free port", "8081")
    .option(
      "--cors-origin <origin>",
      "an origin whose web pages may use it, or *; repeatable (default: pages of this machine)",
      collect,
      [],
    )
    .addHelpText("after", "\nThe file holds prompts and answers, and no headers of requests: no keys.")
    .action(async (url: string, options: { output: string; host: string; port: string; corsOrigin: string[] }) => {
      const { record } = await import("./record-action.ts");
      await record(url, options);
    });
}

function collect(value: string, earlier: readonly string[]): string[] {
  return [...earlier, value];
}
