import type { Command } from "commander";

/** `truewire models`: what a running server does with its local models. */
export function register(program: Command): void {
  const models = program
    .command("models")
    .description("list, load, unload and pull the local models of a running server");
  const add = (name: string, description: string): Command =>
    models
      .command(name)
      .description(description)
      .option("--url <url>", "the server (default: $TRUEWIRE_URL, else http://127.0.0.1:8080)")
      .option(
        "--admin-key <key>",
        "its admin key (default: $TRUEWIRE_ADMIN_KEY); a server for this machine only needs none",
      );
  add("list", "what is served, what is loaded, and what memory it takes")
    .option("--json", "as the server sends it")
    .action(async (options) => {
      const { listModels } = await import("./models/models-action.ts");
      await listModels(options);
    });
  for (const [verb, description, argument] of verbs) {
    add(verb, description)
      .argument("<model>", argument)
      .action(async (model: string, options) => {
        const { changeModel } = await import("./models/models-action.ts");
        await changeModel(verb, model, options);
      });
  }
}

const verbs = [
  ["load", "load a model, and unload others where it needs their room", "the model's name"],
  ["unload", "unload a model as soon as its answers have ended", "the model's name"],
  ["pull", "download a model, or go on with a download that broke off", "the model's name, or hf:owner/repo[:quant]"],
] as const;
