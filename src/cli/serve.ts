import type { Command } from "commander";

/** `truewire serve`. Its options have the names of the configuration's members; what they mean is said in ../config/schema.ts. */
export function register(program: Command): void {
  program
    .command("serve")
    .description("one OpenAI API over models, servers and programs")
    .argument(
      "[targets...]",
      "model.gguf, hf:owner/repo[:quant], https://host/v1 or ./program.ts, each with name= before it if wanted; " +
        "none: what truewire.yaml says, else the bundled demo model",
    )
    .option("-c, --config <file>", "a configuration file (default: truewire.yaml, where there is one and no targets)")
    .option("--host <address>", "where to listen (default: 127.0.0.1)")
    .option("-p, --port <number>", "0 takes any free one (default: 8080)")
    .option("--api-key <key>", "a key that clients may use, repeatable (or TRUEWIRE_API_KEY)", collect)
    .option(
      "--cors-origin <origin>",
      "an origin whose pages may call, or *, repeatable (default: this machine's)",
      collect,
    )
    .option("--wire <form>", "lean or openai (default: lean)")
    .option("--hold <time>", "how long a stream's status waits for its first event (default: 10s)")
    .option("--keep-alive <time>", "a stream gets a comment after so long without an event (default: 15s)")
    .option("--grace <time>", "how long running answers may take to finish on SIGTERM (default: 10s)")
    .option("--body-limit <size>", "of a request's body (default: 32MiB)")
    .option("--header-timeout <time>", "for a request's headers (default: 20s)")
    .option("--request-timeout <time>", "for a whole request to arrive (default: 5m)")
    .option("--idle-timeout <time>", "for a connection without a request (default: 75s)")
    .option("--log-level <level>", "debug, info, warn, error or silent (default: info)")
    .option("--log-stream <file>", "append every streamed event to a file")
    .optionsGroup("Options for the local models among the targets:")
    .option("--context-size <tokens>", "prompt and answer together, for each slot")
    .option("--slots <number>", "answers that are generated at once (default: 4)")
    .option("--threads <number>", "CPU threads (default: all cores but one); for programs: worker threads")
    .option("--gpu <layers>", "auto, off, or a number of layers (default: auto)")
    .option("--batch-size <tokens>", "that are evaluated in one pass at most (default: 512)")
    .option("--queue-limit <number>", "answers that may wait for a slot (default: 64)")
    .option("--chat-template <file>", "a Jinja template in place of the model's own")
    .option("--tool-format <name>", "how the model writes tool calls and reasoning (default: found)")
    .optionsGroup("Options for the upstreams among the targets:")
    .option("--key <key>", "the key they want")
    .optionsGroup("Options for the programs among the targets:")
    .option("--watch", "load a program anew when its file changes")
    .action(async (targets: string[], options: Record<string, unknown>) => {
      const { serve } = await import("./serve-action.ts");
      await serve(targets, options);
    });
}

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}
