import type { Command } from "commander";
import type { RenderOptions } from "./render-action.ts";

/** `truewire render`: messages and a chat template → prompt. */
export function register(program: Command): void {
  program
    .command("render")
    .description("Print the prompt that a chat template makes of a request. Reads a chat completions body from stdin.")
    .option("--template <file>", "the chat template: a Jinja file, or a GGUF file that holds one")
    .option(
      "--special <token>",
      "the text of a special token, so that messages cannot forge it; repeatable",
      collect,
      [],
    )
    .option("--bos <token>", "the model's beginning-of-sequence token, for templates that print it")
    .option("--eos <token>", "the model's end-of-sequence token, for templates that print it")
    .option("--spans", "print the prompt in pieces, one JSON object per line: {text, special}")
    .option(
      "--jsonl",
      "read one job per line: {id, template | template_source, …a request's members}; print one result per line",
    )
    .action(async (options: RenderOptions) => {
      const { render } = await import("./render-action.ts");
      await render(options);
    });
}

function collect(value: string, values: readonly string[]): string[] {
  return [...values, value];
}
