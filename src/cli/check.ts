import type { Command } from "commander";

/** `truewire check`: does that server speak OpenAI's wire? */
export function register(program: Command): void {
  program
    .command("check")
    .description("check a server, or a captured answer, against OpenAI's wire")
    .argument("[url]", "the API's base URL, such as http://localhost:11434/v1")
    .option("--model <name>", "the model to ask (default: the first that the server lists)")
    .option("--key <key>", "the API key (default: $OPENAI_API_KEY)")
    .option("--only <prefix...>", "only probes whose id begins so")
    .option("--profile <name>", "demand one form of the wire: lean or openai; every departure is then an error")
    .option("--format <name>", "pretty, json, junit, markdown or html", "pretty")
    .option("--output <file>", "write the report to a file")
    .option("--timeout <seconds>", "how long one probe may take", "60")
    .option("--concurrency <n>", "probes under way at once", "2")
    .option("--file <capture>", "judge a captured body instead of a server")
    .option("--request <file>", "with --file: the request, as JSON")
    .option("--list", "explain every rule")
    .action(async (url: string | undefined, options: Record<string, string>) => {
      const { checkAction } = await import("./check-action.ts");
      process.exitCode = await checkAction(url, options);
    });
}
