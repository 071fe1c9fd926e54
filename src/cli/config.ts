import type { Command } from "commander";

/** `truewire config`: what can be done with a configuration file without serving. */
export function register(program: Command): void {
  const config = program.command("config").description("check a configuration file, or print its schema");

  config
    .command("check")
    .description("say whether a configuration file is right, and if not, where it is wrong")
    .argument("[file]", "the file", "truewire.yaml")
    .action(async (file: string) => {
      const { readConfigFile } = await import("../config/read-config-file.ts");
      const { models = [] } = await readConfigFile(file, process.env);
      console.log(`${file} is right; it serves ${models.length} ${models.length === 1 ? "model" : "models"}.`);
    });

  config
    .command("schema")
    .description("print the JSON schema of configuration files, for editors")
    .action(async () => {
      const { configJsonSchema } = await import("../config/schema.ts");
      console.log(JSON.stringify(configJsonSchema(), null, 2));
    });
}
