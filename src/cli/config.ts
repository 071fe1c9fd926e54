import type { Command } from "commander";

/** `truewire config`: check a configuration file, or print its schema. */
export function register(program: Command): void {
  const config = program.command("config").description("check a configuration file, or print its schema");

  config
    .command("check")
    .description("check a configuration file and report every mistake with its line")
    .argument("[file]", "the configuration file", "truewire.yaml")
    .action(async (file: string) => {
      const { readConfigFile } = await import("../config/read-config-file.ts");
      const { models = [] } = await readConfigFile(file, process.env);
      console.log(`${file} is valid. It has ${models.length} ${models.length === 1 ? "entry" : "entries"} in models.`);
    });

  config
    .command("schema")
    .description("print the JSON schema of configuration files, for editors")
    .action(async () => {
      const { configJsonSchema } = await import("../config/schema.ts");
      console.log(JSON.stringify(configJsonSchema(), null, 2));
    });
}
