// Writes dist/serve/config/config.d.ts, the types of a configuration in code, from the schema of the configuration. Part of the build.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { configJsonSchema } from "../dist/serve/config/schema.js";

const config = configJsonSchema({ inCode: true });
const { keys, hostedTools, models } = config.properties;
const kinds = { local: "LocalModel", upstream: "UpstreamModel", program: "ProgramModel", engine: "EngineModel" };
const entries = models.items.oneOf.map((kind) => [kinds[kind.properties.kind.const], kind]);
const named = new Map([
  [keys.items, "KeyEntry"],
  [hostedTools, "HostedToolsOptions"],
  [models.items, "string | ModelEntry"],
]);
const declarations = [
  [
    "TruewireConfig",
    config,
    "A configuration, as `truewire.yaml` holds it and as an object in code. Every member has the name of the command line's option (`--cors-origin` is `corsOrigin`). Times are seconds, or texts such as `500ms`, `10s`, `2m`; sizes are bytes, or texts such as `32MiB`. A model may be a target as on the command line: `name=model.gguf`, `https://…`, `./program.ts`.",
  ],
  [
    "KeyEntry",
    keys.items,
    "A key that is known by its hash, and what it may use; a limit that is absent does not apply.",
  ],
  ["HostedToolsOptions", hostedTools, "What runs hosted tools (docs/hosted-tools.md)."],
  ...entries.map(([name, kind]) => [
    name,
    kind,
    `${kind.description ?? "An engine made by the caller: in code only"}.`,
  ]),
];
const text = [
  "// Written by scripts/write-config-types.mjs from the schema of the configuration.",
  'import type { Program } from "../../wire/apis/chat/program.ts";',
  'import type { Engine } from "../../wire/core/engine.ts";',
  'import type { Hook } from "../../wire/core/hook.ts";',
  'import type { HostedProgram } from "../../wire/core/hosted-program.ts";',
  ...declarations.map(([name, schema, doc]) => `${comment(doc, "")}export interface ${name} ${membersOf(schema, "")}`),
  `export type ModelEntry = ${entries.map(([name]) => name).join(" | ")};`,
].join("\n");
const file = "dist/serve/config/config.d.ts";
if (readFileSync(file, "utf8") !== `${text}\n`) {
  writeFileSync(`${file}.${process.pid}`, `${text}\n`);
  renameSync(`${file}.${process.pid}`, file);
}

function typeOf(schema, indent) {
  const name = named.get(schema);
  if (name !== undefined) return name;
  if (schema.typeInCode !== undefined) return schema.typeInCode;
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return [...new Set(variants.map((variant) => typeOf(variant, indent)))].join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  switch (schema.type) {
    case "array":
      return `readonly (${typeOf(schema.items, indent)})[]`;
    case "object":
      if (schema.properties) return membersOf(schema, indent);
      return `Readonly<Record<string, ${typeOf(schema.additionalProperties ?? {}, indent)}>>`;
    case "integer":
      return "number";
    default:
      return schema.type ?? "unknown";
  }
}

function membersOf({ properties, required = [] }, indent) {
  const deeper = `${indent}  `;
  const members = Object.entries(properties).map(([name, schema]) => {
    const isNeeded = required.includes(name);
    const member = /^\w+$/.test(name) ? name : JSON.stringify(name);
    const type = typeOf(schema, deeper);
    const doc = schema.description === undefined ? "" : comment(`${schema.description}.`, deeper);
    return `${doc}${deeper}readonly ${member}${isNeeded ? "" : "?"}: ${type}${isNeeded ? "" : " | undefined"};`;
  });
  return `{\n${members.join("\n")}\n${indent}}`;
}

function comment(text, indent) {
  return `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`;
}
