import type { Command } from "commander";

/** `truewire keys`: make keys for clients. */
export function register(program: Command): void {
  program
    .command("keys")
    .description("make keys for clients")
    .command("new")
    .description("print a new key, once, and the lines for the configuration (keys) or the file of keys")
    .requiredOption("--name <name>", "whose key it is, such as alice")
    .action(async ({ name }: { readonly name: string }) => {
      const { newKey } = await import("./keys-action.ts");
      await newKey(name);
    });
}
