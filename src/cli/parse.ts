import type { Command } from "commander";
import type { ParseOptions } from "./parse-action.ts";

/** `truewire parse`: raw model text → message. */
export function register(program: Command): void {
  program
    .command("parse")
    .description("Read what a model wrote: raw text from stdin → content, reasoning and tool calls, as JSON.")
    .option("--format <name>", "how the model writes (`truewire formats` lists what is known)")
    .option("--template <file>", "find the format from this chat template: a Jinja file, or a GGUF that holds one")
    .option("--tools <file>", "tools, as in a request: they type untyped values, calls of other names stay text")
    .option("--prefix <text>", "what the prompt already ended with, such as '<think>\\n'")
    .option("--events", "print the event stream, one JSON a line")
    .option("--jsonl", "one job a line: {id, format, text, prefix?, tools?, params?, chunks?}; one result a line")
    .action(async (options: ParseOptions) => {
      const { parse } = await import("./parse-action.ts");
      await parse(options);
    });
}
