import { Argument, type Command } from "commander";
import type { BatchOptions } from "./batch-action.ts";
import type { CacheWhyOptions } from "./cache-action.ts";
import type { Shell } from "./completion.ts";
import type { LaunchOptions } from "./launch-action.ts";
import type { ParseOptions } from "./parse-action.ts";
import type { RenderOptions } from "./render-action.ts";
import { example } from "./serve.ts";

/*
 * All commands except `serve`: their arguments, options and help. Each imports what it needs when it runs, so that `--help` is fast.
 */

/** `truewire check`: does a server follow the OpenAI API, and Anthropic's Messages API? */
export function checkCommand(program: Command): void {
  command(program, "check", "truewire check http://localhost:11434/v1")
    .description("check whether a server, or a captured answer, follows the OpenAI API or Anthropic's Messages API")
    .argument("[url]", "the API's base URL, such as http://localhost:11434/v1")
    .option("--model <name>", "the model to ask (default: the first that the server lists)")
    .option(
      "--key <key>",
      "the API key (default: $OPENAI_API_KEY; with --only messages $ANTHROPIC_API_KEY, with --only gemini $GEMINI_API_KEY)",
    )
    .option(
      "--only <word...>",
      "only the probes of an API (chat, completions, responses, embeddings, models, messages, ollama, gemini), or whose id begins so (text, tools, wrong)",
    )
    .option("--profile <name>", "require one form of answers, lean or exact; every difference is then an error")
    .option("--max-warnings <n>", "exit with 1 when more rules than this end in a warning")
    .option("--format <name>", "pretty, json, junit, markdown or html", "pretty")
    .option("--output <file>", "write the report to a file")
    .option("--timeout <seconds>", "the time limit of one probe", "60")
    .option("--concurrency <n>", "the number of probes that run in parallel", "2")
    .option(
      "--file <capture>",
      "check a captured body, a HAR file, or a recording of truewire record, instead of a server",
    )
    .option("--request <file>", "with --file: the request of that answer, as JSON")
    .option("--list", "list every rule, as Markdown")
    .action(async (url: string | undefined, options: Record<string, string>) =>
      exits((await import("./check-action.ts")).checkAction(url, options)),
    );
}

/** A command whose help begins with the line that most people need. */
function command(parent: Command, name: string, line: string): Command {
  return parent.command(name).addHelpText("before", example(line));
}

/** Ends the command with this exit code. */
async function exits(code: Promise<number>): Promise<void> {
  process.exitCode = await code;
}

/** `truewire between`: what does a gateway lose? */
export function betweenCommand(program: Command): void {
  command(program, "between", "truewire between http://127.0.0.1:4000 --client messages --vendor openai")
    .description(
      "send requests through a gateway to the double of a vendor, and report what was lost in either direction",
    )
    .argument("<url>", "the gateway's base URL; its upstream is configured as http://127.0.0.1:9001")
    .option("--client <api>", "the API of the clients: chat, responses, messages, ollama or gemini", "chat")
    .option("--vendor <api>", "the API by which the gateway asks its upstream: as for --client", "chat")
    .option("--port <number>", "the port of the vendor", "9001")
    .option("--host <address>", "its address", "127.0.0.1")
    .option("--model <name>", "the model that clients ask for", "between")
    .option("--vendor-model <name...>", "the names by which the gateway asks the vendor for it (default: the same)")
    .option("--key <key>", "the gateway's API key (default: sk-between)")
    .option("--header <name: value...>", "headers of every request, such as those that name the gateway's upstream")
    .option(
      "--body <json>",
      "members of every request that does not have them, such as a limit that the vendor demands",
    )
    .option("--quick", "only the facts that gateways lose most often")
    .option("--only <id...>", "only facts whose id begins so, such as session or error")
    .option(
      "--sessions <path>",
      "recorded sessions in place of the facts: a file, or a folder with .jsonl and .har files",
    )
    .option("--seeds <n...>", "the seeds of the sessions that are generated (default: 1 2, and 1 with --quick)")
    .option(
      "--confirm <n>",
      "send this number of other requests for each error and warning, and say in how many it is seen again",
    )
    .option("--relay", "the gateway's upstream cannot be configured: judge its answers alone")
    .option(
      "--prices <input,cached>",
      "dollars for a million tokens of a prompt, and for cached ones; or a price list (LiteLLM's JSON) that has the vendor's model",
      "3,0.3",
    )
    .option("--format <name>", "pretty, json, junit or html", "pretty")
    .option("--output <file>", "write the report to a file")
    .option("--baseline <file>", "an earlier report in JSON: only what is new in this one fails")
    .option("--timeout <seconds>", "the time limit of one request", "60")
    .option("--concurrency <n>", "the number of requests that run in parallel", "8")
    .action(async (url: string, options) => exits((await import("./between-action.ts")).betweenAction(url, options)));
}

/** `truewire vendor`: the vendor double of `truewire between`, alone. */
export function vendorCommand(program: Command): void {
  command(program, "vendor", "truewire vendor --api messages")
    .description("serve the exact double of a vendor: it refuses what the vendor refuses, and answers from a script")
    .option("--api <api>", "chat, responses, messages, ollama or gemini", "chat")
    .option("--port <number>", "the port", "9001")
    .option("--host <address>", "the address", "127.0.0.1")
    .option("--model <name...>", "the models that it has", ["between"])
    .option("--script <file>", "a list of answers as JSON, which are given in turn (default: a short text)")
    .action(async (options) => (await import("./between-action.ts")).vendorAction(options));
}

/** `truewire doctor`: what is wrong with a server, or with this machine? */
export function doctorCommand(program: Command): void {
  command(program, "doctor", "truewire doctor localhost:11434")
    .description("find what is wrong with a server, or without URL with this machine, and what cures it")
    .argument("[url]", "the API's base URL, such as http://localhost:11434/v1")
    .option("--model <name>", "the model to ask (default: the first that the server lists)")
    .option("--key <key>", "the API key, which is sent to this URL only (default: $OPENAI_API_KEY)")
    .option("--timeout <seconds>", "the time for everything; what is not reached in it is reported", "10")
    .option("--json", "print the findings as JSON")
    .option("--write <file>", "write what the server refuses into the entry of its URL in a configuration file")
    .action(async (url: string | undefined, options) =>
      exits((await import("./doctor-action.ts")).doctorAction(url, options)),
    );
}

/** `truewire launch`: starts a coding agent against a server. */
export function launchCommand(program: Command): void {
  command(program, "launch", "truewire launch claude")
    .description("start an installed coding agent with a Truewire; the agent's own configuration stays as it is")
    .argument("[agent]", "codex, claude, opencode, crush, qwen, gemini or continue")
    .argument("[targets...]", "what to serve to it, with the options of truewire serve (default: see --url)")
    .usage("<agent> [options] [targets and options of truewire serve...] [-- arguments of the agent...]")
    .option("--url <url>", "a running server (default: $TRUEWIRE_URL, http://127.0.0.1:8080, or one that is started)")
    .option("--model <name>", "the model (default: the first chat model with enough context)")
    .option("--api-key <key>", "the key of a server that is named or started (default: $TRUEWIRE_API_KEY)")
    .option("--print", "print what it would set, as lines for a shell, and start nothing")
    // In place of commander's own, which would also find the option among the agent's.
    .helpOption(false)
    .option("-h, --help", "display help for command")
    .allowUnknownOption()
    .action(
      async (
        agent: string | undefined,
        _: readonly string[],
        options: LaunchOptions & { help?: true },
        command: Command,
      ) => {
        if (agent === undefined || options.help) return command.help();
        const end = process.argv.indexOf("--");
        const agentArgs = end === -1 ? [] : process.argv.slice(end + 1);
        const serveArgs = command.args.slice(1, command.args.length - agentArgs.length);
        // Behind an option that it does not know, commander keeps the separator.
        if (end !== -1 && serveArgs.at(-1) === "--") serveArgs.pop();
        const { launch } = await import("./launch-action.ts");
        await launch(agent, serveArgs, agentArgs, options);
      },
    );
}

/** `truewire models`: what a running server does with its local models. */
export function modelsCommand(program: Command): void {
  const models = command(program, "models", "truewire models list").description(
    "list, load, unload, pull and keep the local models of a running server; forget what was learned about upstreams",
  );
  const add = (name: string, description: string): Command =>
    models
      .command(name)
      .addHelpText("before", example(`truewire models ${name}${name === "list" ? "" : " gemma-3-4b"}`))
      .description(description)
      .option("--url <url>", "the server (default: $TRUEWIRE_URL, else http://127.0.0.1:8080)")
      .option(
        "--admin-key <key>",
        "its admin key (default: $TRUEWIRE_ADMIN_KEY), for a server that is named; one for this machine only needs none",
      );
  add("list", "what is served, what is loaded, and what memory it takes")
    .option("--json", "as the server sends it")
    .option("--verbose", "also what the servers of upstreams accept, and how that is known")
    .option("--watch", "show every change, until the server stops; with --json, one state a line")
    .action(async (options) => (await import("./models-action.ts")).listModels(options));
  for (const [verb, description, argument] of modelVerbs) {
    add(verb, description)
      .argument("<model>", argument)
      .action(async (model: string, options) => (await import("./models-action.ts")).changeModel(verb, model, options));
  }
  add("forget", "forget what refusals have taught about a model of an upstream")
    .argument("<model>", "the model's name")
    .argument("[lesson]", "one lesson, as `list --verbose` names it, such as drop.stop (default: all)")
    .option("--at <url>", "only at this server of the upstream")
    .action(async (model: string, lesson: string | undefined, options) =>
      (await import("./models-action.ts")).forgetLessons(model, lesson, options),
    );
  add("keep", "never unload a model for another one, nor for being idle")
    .argument("<model>", "the model's name")
    .option("--off", "no longer keep it")
    .action(async (model: string, options) => (await import("./models-action.ts")).keepModel(model, options));
}

/** `truewire libraries`: the builds of llama.cpp that local models use. */
export function librariesCommand(program: Command): void {
  const libraries = command(program, "libraries", "truewire libraries install").description(
    "list and install the builds of llama.cpp that local models use: CPU, CUDA, Vulkan, Metal",
  );
  libraries
    .command("list", { isDefault: true })
    .addHelpText("before", example("truewire libraries list"))
    .description("which builds are installed, which fit this machine, and why")
    .option("--json", "print the builds as JSON")
    .action(async (options: { readonly json?: true }) =>
      (await import("./libraries-action.ts")).listLibraries(options),
    );
  command(libraries, "install", "truewire libraries install vulkan")
    .description("download a build from the npm registry into your folder for data of programs")
    .argument("[build]", "cpu, cuda, vulkan or metal (default: the best that fits this machine)")
    .action(async (build: string | undefined) => (await import("./libraries-action.ts")).installLibraries(build));
}

const modelVerbs = [
  ["load", "load a model, and unload others if it needs their memory", "the model's name"],
  ["unload", "unload a model as soon as its answers have ended", "the model's name"],
  ["pull", "download a model, or go on with a download that broke off", "the model's name, or hf:owner/repo[:quant]"],
] as const;

/** `truewire parse`: raw model text → message. */
export function parseCommand(program: Command): void {
  command(program, "parse", "truewire parse --format hermes < text.txt")
    .description("read what a model wrote: raw text from stdin → content, reasoning and tool calls, as JSON")
    .option("--format <name>", "how the model writes (`truewire formats` lists what is known)")
    .option("--template <file>", "find the format from this chat template: a Jinja file, or a GGUF that holds one")
    .option("--tools <file>", "tools, as in a request: they type untyped values, calls of other names stay text")
    .option("--prefix <text>", "what the prompt already ended with, such as '<think>\\n'")
    .option("--events", "print the event stream, one JSON a line")
    .option("--jsonl", "one job a line: {id, format, text, prefix?, tools?, params?, chunks?}; one result a line")
    .action(async (options: ParseOptions) => (await import("./parse-action.ts")).parse(options));
}

/** `truewire formats`: what is known of how models write. */
export function formatsCommand(program: Command): void {
  command(program, "formats", "truewire formats")
    .description("list the formats of tool calls and reasoning that are known, with a sample of each")
    .option("--json", "print the descriptions themselves, as a configuration file takes them")
    .action(async (options: { readonly json?: true }) => {
      const { listFormats } = await import("./formats-action.ts");
      process.stdout.write(listFormats(options.json === true));
    });
}

/** `truewire render`: messages and a chat template → prompt. */
export function renderCommand(program: Command): void {
  command(program, "render", "truewire render --template model.gguf < request.json")
    .description("print the prompt that a chat template makes of a request, a chat completions body on stdin")
    .option("--template <file>", "the chat template: a Jinja file, or a GGUF file that holds one")
    .option(
      "--special <token>",
      "the text of a special token, so that messages cannot forge it; repeatable",
      collect,
      [],
    )
    .option("--bos <token>", "the model's beginning-of-sequence token, for templates that print it")
    .option("--eos <token>", "the model's end-of-sequence token, for templates that print it")
    .option("--spans", "print the prompt as spans, one JSON object per line: {text, special}")
    .option(
      "--jsonl",
      "read one job per line: {id, template | template_source, …a request's members}; print one result per line",
    )
    .action(async (options: RenderOptions) => (await import("./render-action.ts")).render(options));
}

/** `truewire batch`: the requests of a file. */
export function batchCommand(program: Command): void {
  command(program, "batch", "truewire batch requests.jsonl --model model.gguf")
    .description("run the requests of a file, and go on where an earlier run has stopped")
    .argument("<file>", "JSONL: lines of OpenAI's batches, or bodies with messages, input or prompt")
    .option("--model <target>", "what answers: a target of truewire serve; with --url, the name of a model there")
    .option("--url <url>", "a running server, such as http://127.0.0.1:8080")
    .option("--output <file>", "where results are appended (default: FILE.results.jsonl)")
    .option("--api-key <key>", "the key of the server at --url (default: $TRUEWIRE_API_KEY)")
    .option("--concurrency <n>", "the most requests that run at a time", "8")
    .option("--json", "print the counts as JSON")
    .addHelpText("after", "\nLines that have an answer in the output are not run again. Ctrl-C keeps what is done.")
    .action(async (file: string, options: BatchOptions) =>
      exits((await import("./batch-action.ts")).runBatch(file, options)),
    );
}

/** `truewire repair`. */
export function repairCommand(program: Command): void {
  command(program, "repair", "truewire repair < broken.sse > exact.sse")
    .description(
      "repair a captured answer of any server: read it from stdin, write it to stdout as OpenAI would send it",
    )
    .option("--wire <form>", "the form to write: lean or exact", "lean")
    .option("--from <api>", "the API that the capture is from: chat, completions, responses, messages or auto", "auto")
    .option(
      "--jsonl",
      "many captures: one {id, endpoint, body} (or a line of truewire record) a line in, one {id, body, repairs} a line out",
    )
    .addHelpText("after", "\nThe repairs are listed on stderr.")
    .action(async (options: { wire: string; from: string; jsonl?: boolean }) =>
      (await import("./repair-action.ts")).repairStdin(options),
    );
}

/** `truewire cache why`: why a source processed prompts again. */
export function cacheCommand(program: Command): void {
  command(program, "cache", "truewire cache why recording.jsonl")
    .description("what of the prompts in recordings a cache could have held")
    .command("why")
    .addHelpText("before", example("truewire cache why recording.jsonl"))
    .description("say which requests do not begin as an earlier one, and what changed; exits with 1 if there is one")
    .argument("<paths...>", "recordings of truewire record, HAR files, or folders of them")
    .option("--price <dollars>", "what a million tokens of a prompt cost that are not cached")
    .option("--cached-price <dollars>", "what they cost if they are read from a cache (default: 0)")
    .option("--json", "print the requests as JSON")
    .action(async (paths: readonly string[], options: CacheWhyOptions) =>
      exits((await import("./cache-action.ts")).cacheWhy(paths, options)),
    );
}

/** `truewire record`. */
export function recordCommand(program: Command): void {
  command(program, "record", "truewire record http://localhost:11434/v1")
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
    .action(async (url: string, options: { output: string; host: string; port: string; corsOrigin: string[] }) =>
      (await import("./record-action.ts")).record(url, options),
    );
}

/** `truewire replay`. */
export function replayCommand(program: Command): void {
  command(program, "replay", "truewire replay recording.jsonl")
    .description(
      "serve captured answers again, byte for byte and with their timing: a server for tests that never varies",
    )
    .argument(
      "<files...>",
      "recordings of truewire record, HAR files, transcripts of curl -v, or the bodies of answers",
    )
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("-p, --port <number>", "the port; 0 takes any free port", "8080")
    .option("--speed <factor>", "the speed as a multiple of the recorded one; max sends everything immediately", "1")
    .addHelpText("after", "\nA request that is in no file is a 404 that shows the nearest one and what differs.")
    .action(async (files: string[], options: { host: string; port: string; speed: string }) =>
      (await import("./replay-action.ts")).replay(files, options),
    );
}

/** `truewire config`: check a configuration file, or print its schema. */
export function configCommand(program: Command): void {
  const config = command(program, "config", "truewire config check").description(
    "check a configuration file, or print its schema",
  );

  command(config, "check", "truewire config check truewire.yaml")
    .description("check a configuration file and report every mistake with its line, and model files that do not exist")
    .argument("[file]", "the configuration file", "truewire.yaml")
    .action(async (file: string) => {
      const { checkConfigFile } = await import("../config/read-config-file.ts");
      const models = await checkConfigFile(file, process.env);
      console.log(`${file} is valid. It has ${models === 1 ? "1 entry" : `${models} entries`} in models.`);
    });

  command(config, "schema", "truewire config schema > truewire.schema.json")
    .description("print the JSON schema of configuration files, for editors")
    .action(async () => {
      const { configJsonSchema } = await import("../config/schema.ts");
      console.log(JSON.stringify(configJsonSchema(), null, 2));
    });
}

/** `truewire keys`: make keys for clients, and show what they used. */
export function keysCommand(program: Command): void {
  const keys = command(program, "keys", "truewire keys new --name alice").description(
    "make keys for clients; create, list and revoke those of a running server, and show what was used",
  );
  const add = (name: string, description: string, argument: string): Command =>
    keys
      .command(name)
      .addHelpText("before", example(`truewire keys ${name}${argument}`))
      .description(description)
      .option("--url <url>", "the server (default: $TRUEWIRE_URL, else http://127.0.0.1:8080)")
      .option("--admin-key <key>", "its admin key (default: $TRUEWIRE_ADMIN_KEY), for a server that is named");
  add(
    "create",
    "create a key at a running server (managedKeys), and print it, once",
    " --name alice --budget-month 100",
  )
    .requiredOption("--name <name>", "whose key it is, such as alice; keys of one name count together")
    .option("--owner <text>", "who answers for it, such as search-team")
    .option("--note <text>", "a text for people")
    .option("--models <names>", "the models that it may use, such as small,gpt-* (default: all)")
    .option("--requests-per-minute <n>", "the most requests in a minute")
    .option("--tokens-per-minute <n>", "the most tokens in a minute")
    .option("--tokens-per-day <n>", "the most tokens on a day (UTC)")
    .option("--concurrency <n>", "the most requests in parallel")
    .option("--budget-day <dollars>", "the most US dollars on a day (UTC)")
    .option("--budget-month <dollars>", "the most US dollars in a calendar month")
    .option("--budget-total <dollars>", "the most US dollars in all")
    .option("--expires <time>", "when it stops working, such as 2027-01-31")
    .option("--json", "print the key and its settings as JSON")
    .action(async (options) => (await import("./keys-action.ts")).createKey(options));
  add("list", "the keys of a running server, and what is used of their limits", "")
    .option("--json", "as the server sends it")
    .action(async (options) => (await import("./keys-action.ts")).listKeys(options));
  add("revoke", "revoke a key that was created at a running server", " 3f0a94b7c2d15e68")
    .argument("<id>", "its id, as `list` shows it")
    .action(async (id: string, options) => (await import("./keys-action.ts")).revokeKey(id, options));
  add("usage", "what keys used, by key, day and model", " --days 7")
    .option("--days <n>", "the last days, 1 to 92", "30")
    .option("--key <name>", "only this key")
    .option("--csv", "as CSV")
    .option("--json", "as JSON")
    .action(async (options) => (await import("./keys-action.ts")).showUsage(options));
  command(keys, "new", "truewire keys new --name alice")
    .description("print a new key, once, and the lines for the configuration (keys) or the file of keys")
    .requiredOption("--name <name>", "whose key it is, such as alice")
    .option("--json", "print the key and its entry as JSON")
    .action(async ({ name, json }: { readonly name: string; readonly json?: true }) =>
      (await import("./keys-action.ts")).newKey(name, json === true),
    );
}

/** `truewire service`: runs `truewire serve` when the user logs in. */
export function serviceCommand(program: Command): void {
  const service = command(program, "service", "truewire service install model.gguf").description(
    "run truewire serve in the background, from when you log in (systemd)",
  );
  command(service, "install", "truewire service install model.gguf --slots 2")
    .description("write the service's unit and start it; again: with other targets and options")
    .argument("[targets...]", "the targets and options of truewire serve; relative paths are relative to this folder")
    .usage("[--print] [targets and options of truewire serve...]")
    .option("--print", "print the file, and change nothing")
    .allowUnknownOption()
    .action(async (_: readonly string[], options: { readonly print?: true }, command: Command) =>
      (await import("./service-action.ts")).installService(command.args, options),
    );
  command(service, "uninstall", "truewire service uninstall")
    .description("stop the service and remove its file")
    .action(async () => (await import("./service-action.ts")).uninstallService());
  command(service, "status", "truewire service status")
    .description("whether the service is installed and runs; exits with 1 if it does not run")
    .action(async () => {
      const { serviceStatus } = await import("./service-action.ts");
      process.exitCode = serviceStatus() ? 0 : 1;
    });
}

/** `truewire completion`: what a shell completes. */
export function completionCommand(program: Command): void {
  command(program, "completion", 'eval "$(truewire completion bash)"')
    .description("print the script by which a shell completes commands and options")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .action(async (shell: Shell) => {
      const { completionScript } = await import("./completion.ts");
      process.stdout.write(completionScript(program, shell));
    });
}

/** Collects the values of a repeatable option. */
function collect(value: string, values: readonly string[]): string[] {
  return [...values, value];
}
