import type { Command } from "commander";

/** `truewire check`: does a server follow the OpenAI API, and Anthropic's Messages API? */
export function register(program: Command): void {
  program
    .command("check")
    .description("check whether a server, or a captured answer, follows the OpenAI API or Anthropic's Messages API")
    .argument("[url]", "the API's base URL, such as http://localhost:11434/v1")
    .option("--model <name>", "the model to ask (default: the first that the server lists)")
    .option("--key <key>", "the API key (default: $OPENAI_API_KEY; with --only messages $ANTHROPIC_API_KEY)")
    .option(
      "--only <word...>",
      "only the probes of an API (chat, completions, responses, embeddings, models, messages), or whose id begins so (text, tools, wrong)",
    )
    .option("--profile <name>", "require one form of answers, lean or exact; every difference is then an error")
    .option("--max-warnings <n>", "exit with 1 when more rules than this end in a warning")
    .option("--format <name>", "pretty, json, junit, markdown or html", "pretty")
    .option("--output <file>", "write the report to a file")
    .option("--timeout <seconds>", "the time limit of one probe", "60")
    .option("--concurrency <n>", "how many probes run at once", "2")
    .option("--file <capture>", "check a captured body, or a recording of truewire record, instead of a server")
    .option("--request <file>", "with --file: the request of that answer, as JSON")
    .option("--list", "list every rule, as Markdown")
    .action(async (url: string | undefined, options: Record<string, string>) => {
      const { checkAction } = await import("./check-action.ts");
      process.exitCode = await checkAction(url, options);
    });
}
