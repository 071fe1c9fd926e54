import { Changing } from "../parts/changing.ts";
import type { Parameter } from "./parameter.ts";
import type { PlayTool } from "./tool.ts";

/** What a person has set for the questions to come, in the texts that were entered. */
export class Settings extends Changing {
  model = "";
  system = "";
  /** By their names; what is not there, or blank, is not sent. */
  parameters: Readonly<Record<string, string>> = {};
  /** Of all parameters; empty until the page has them. */
  table: readonly Parameter[] = [];
  tools: readonly PlayTool[] = [];
  /** "", `none`, `required`, or the name of a tool after `tool:`. */
  toolChoice = "";
  format: "text" | "json" | "schema" = "text";
  /** A JSON schema. */
  schema = "";
  choices = 1;
  /** How many alternatives to each token; undefined: no probabilities at all. */
  alternatives: number | undefined;

  set(values: Partial<Omit<Settings, keyof Changing | "set">>): void {
    Object.assign(this, values);
    this.changed();
  }
}
