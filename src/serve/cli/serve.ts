import type { Command } from "commander";
import { tuneV8 } from "../app/tune-v8.ts";
import type { DiscoveryOptions } from "./serve-action.ts";

/** `truewire serve`. Its options have the names of the configuration's members; ../config/schema.ts explains them. */
export function serveCommand(program: Command, discovery?: DiscoveryOptions): void {
  program
    .command("serve")
    .addHelpText("before", example("truewire serve model.gguf"))
    .description("serve models, other servers and programs with the APIs of OpenAI, Anthropic, Gemini and Ollama")
    .argument(
      "[targets...]",
      "model.gguf, a folder of such files, hf:owner/repo[:quant], https://host/v1 or ./program.ts; name=TARGET sets the " +
        "name for clients (default: the models of truewire.yaml, else the servers of this machine and the bundled demo model)",
    )
    .option(
      "-c, --config <file>",
      "a configuration file (default: truewire.yaml, if it exists and there are no targets)",
    )
    .option(
      "--no-discovery",
      "without targets and truewire.yaml: do not look for servers on this machine's usual ports",
    )
    .option("--host <address>", "where to listen (default: 127.0.0.1)")
    .option("-p, --port <number>", "the port; 0 takes any free port (default: 8080)")
    .option(
      "--workers <number>",
      "independent processes that share one port; more than one need Redis, and upstreams only (default: 1)",
    )
    .option("--tls-cert <file>", "a certificate (PEM); the server then speaks HTTPS")
    .option("--tls-key <file>", "the certificate's private key (PEM)")
    .option("--api-key <key>", "a key that clients may use; repeatable (or set TRUEWIRE_API_KEY)", collect)
    .option("--keys-file <file>", "a YAML list of keys by their hashes, with names and limits; read again on SIGHUP")
    .option("--shared-limits <url>", "count the limits of keys in Redis, with other instances: redis://HOST:PORT")
    .option(
      "--cors-origin <origin>",
      "an origin whose web pages may call, or *; repeatable (default: pages of this machine)",
      collect,
    )
    .option("--wire <form>", "the form of answers: lean, or exact as OpenAI sends them (default: lean)")
    .option("--hold <time>", "how long the status of a stream waits for the first event (default: 10s)")
    .option("--keep-alive <time>", "send a comment in a stream after this time without an event (default: 15s)")
    .option("--grace <time>", "how long running answers may take to finish on SIGTERM (default: 10s)")
    .option("--body-limit <size>", "the largest request body (default: 32MiB)")
    .option("--header-timeout <time>", "the time limit for the headers of a request (default: 20s)")
    .option("--request-timeout <time>", "the time limit for a whole request to arrive (default: 5m)")
    .option("--idle-timeout <time>", "the time limit for a connection without a request (default: 75s)")
    .option("--log-level <level>", "debug, info, warn, error or silent (default: info)")
    .option("--log-format <form>", "json or pretty (default: pretty on a terminal, else json)")
    .option("--log-stream <file>", "append every streamed event to a file")
    .option("--memory <size>", "what loaded local models may take together, such as 12GiB (default: no limit)")
    .option("--load-wait <time>", "how long a request may wait until its model fits into memory (default: 5m)")
    .option("--admin-key <key>", "a key for the paths under /admin; repeatable (or set TRUEWIRE_ADMIN_KEY)", collect)
    .option("--inspect", "keep the last requests in memory, to look at them in the page; needs an admin key")
    .option("--no-inspect", "do not (default: only on a server for this machine without keys)")
    .option("--inspect-size <size>", "what these requests may take in memory (default: 32MiB)")
    .option("--metrics <access>", "numbers for Prometheus at /metrics: on, open (without a key) or off (default: on)")
    .option("--metrics-key <key>", "a key for the numbers alone; repeatable (or set TRUEWIRE_METRICS_KEY)", collect)
    .option("--store <place>", "where responses are kept: memory, a folder, or redis://HOST:PORT (default: memory)")
    .optionsGroup("Tools that are run for clients (docs/hosted-tools.md), in place of the API's vendor:")
    .option("--web-search <target>", "what searches the web: the URL of a SearXNG, brave, tavily, or a program")
    .option("--web-fetch", "fetch pages of the public internet")
    .option("--mcp <name=target>", "an MCP server: name=./server.js, name=URL or name=COMMAND; repeatable", collect)
    .option("--hosted-program <type=file>", "a program for a tool: code_interpreter=./run.ts; repeatable", collect)
    .optionsGroup("Options for the local models among the targets:")
    .option("--context-size <tokens>", "tokens of prompt and answer together, for each slot")
    .option("--slots <number>", "the number of answers that are generated in parallel (default: 4)")
    .option("--threads <number>", "CPU threads (default: all cores but one); for programs: worker threads")
    .option("--gpu <layers>", "auto, off, or a number of layers (default: auto)")
    .option("--split-mode <mode>", "how several GPUs share a model: layer, row, tensor or none (default: layer)")
    .option("--tensor-split <numbers>", "how much of a model each GPU gets, such as 3,1 (default: by its free memory)")
    .option("--main-gpu <number>", "the GPU that is used with --split-mode none (default: 0)")
    .option("--flash-attention <when>", "auto, on or off (default: auto)")
    .option(
      "--cache-type-k <type>",
      "how keys are kept: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl (default: f16)",
    )
    .option("--cache-type-v <type>", "how values are kept, likewise (default: f16)")
    .option(
      "--cache-memory <size>",
      "size of the prompt cache, in addition to the slots (default: as much as the slots have, at most 512MiB)",
    )
    .option("--keep-cache <folder>", "keep what models know of conversations there over a restart")
    .option(
      "--pooling <way>",
      "how embeddings are made: mean, cls, last, rank or none (default: as the model's file says)",
    )
    .option(
      "--mmproj <file>",
      "the model's projector, with which it takes images, or off (default: the one next to it)",
    )
    .option("--llama-libraries <folder>", "llama.cpp's libraries, a build or a release of version 0.5.0")
    .option("--lora <file>", "an adapter (LoRA) of the model, which requests may use; repeatable", collect)
    .option("--batch-size <tokens>", "the most tokens that are evaluated in one pass (default: 512)")
    .option(
      "--max-token-gap <time>",
      "how long the processing of a prompt may delay the next token of running answers (default: 250ms)",
    )
    .option("--queue-limit <number>", "how many answers may wait for a slot, of each key (default: 64)")
    .option("--load <when>", "eager, lazy (with the first request) or manual (default: eager)")
    .option("--idle-unload <time>", "unload a model after it has been idle for this long (default: never)")
    .option("--speculation <when>", "draft tokens from repeated text: auto (where it is faster) or off (default: auto)")
    .option(
      "--loop-guard <when>",
      "end answers that repeat the same text over and over: on or off (default: on for local models)",
    )
    .option("--draft <file>", "a small GGUF model that drafts how answers continue, where that is faster")
    .option("--no-constrain-calls", "leave the arguments of calls free, but for tools with strict and required calls")
    .option("--chat-template <file>", "a Jinja chat template to use instead of the model's own")
    .option(
      "--tool-format <name>",
      "how the model writes tool calls and reasoning (default: found from the chat template)",
    )
    .optionsGroup("Options for the upstreams among the targets:")
    .option("--key <key>", "their API key")
    .option("--model <name>", "a model to serve, in place of those that they list; repeatable", collect)
    .optionsGroup("Options for the programs among the targets:")
    .option("--watch", "reload a program when its file changes")
    .option(
      "--show-errors",
      "send the message of any exception to clients (default: only of exceptions that are meant for them)",
    )
    .action(async (targets: string[], options: Record<string, unknown>) => {
      tuneV8();
      const { serve } = await import("./serve-action.ts");
      await serve(targets, options, discovery);
    });
}

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

/** The command as most people run it, for the beginning of its help. */
export function example(line: string): string {
  return `For example: ${line}\n`;
}
