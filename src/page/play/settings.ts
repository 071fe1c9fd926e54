import { Changing } from "../parts/changing.ts";
import type { Parameter } from "./parameter.ts";
import type { PlayTool } from "./tool.ts";

/** What a preset sets: all settings but the model. */
export interface PresetValues {
  readonly system: string;
  /** By their names, in the texts that were entered; what is not there, or blank, is not sent. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly tools: readonly PlayTool[];
  /** "", `none`, `required`, or the name of a tool after `tool:`. */
  readonly toolChoice: string;
  /** The names of the tools that the server runs where the model calls them. */
  readonly hostedTools: readonly string[];
  readonly format: "text" | "json" | "schema";
  /** A JSON schema. */
  readonly schema: string;
  readonly choices: number;
  /** The number of alternatives to each token; undefined: no probabilities at all. */
  readonly alternatives: number | undefined;
}

/** The settings of one visit: those of a preset, the model, and the name of the preset that was chosen last ("" for none). */
export interface SettingsValues extends PresetValues {
  readonly model: string;
  readonly preset: string;
}

/** Of a new page. */
export const freshValues: PresetValues = {
  system: "",
  parameters: {},
  tools: [],
  toolChoice: "",
  hostedTools: [],
  format: "text",
  schema: "",
  choices: 1,
  alternatives: undefined,
};

/** Settings that an example has set, and those before it. They last as long as its conversation is shown. */
export interface ExampleSettings {
  /** The id of the conversation. */
  readonly conversation: string;
  readonly set: PresetValues;
  readonly before: PresetValues & Pick<SettingsValues, "preset">;
}

/** What a person has set for the questions to come. */
export class Settings extends Changing implements SettingsValues {
  model = "";
  preset = "";
  system = freshValues.system;
  parameters = freshValues.parameters;
  tools = freshValues.tools;
  toolChoice = freshValues.toolChoice;
  hostedTools = freshValues.hostedTools;
  format = freshValues.format;
  schema = freshValues.schema;
  choices = freshValues.choices;
  alternatives = freshValues.alternatives;
  /** The server's timings are requested, if the parameters do not say otherwise. */
  wantsTimings = false;
  /** Of all parameters; empty until the page has them. */
  table: readonly Parameter[] = [];
  example: ExampleSettings | undefined;
  #automaticModel = "";

  set(values: Partial<SettingsValues & Pick<Settings, "table" | "wantsTimings" | "example">>): void {
    Object.assign(this, values);
    this.changed();
  }

  /** Keeps the model if the server has it, else chooses the server's first one. */
  chooseAmong(models: readonly string[]): void {
    if (models.includes(this.model)) return;
    this.#automaticModel = models[0] ?? "";
    this.set({ model: this.#automaticModel });
  }

  /** The model that the user has chosen; "" if the page has chosen it. */
  get chosenModel(): string {
    return this.model === this.#automaticModel ? "" : this.model;
  }

  /** Takes the settings of an example, for its conversation. */
  useExample(conversation: string, set: PresetValues): void {
    const before = { ...this.presetValues, preset: this.preset };
    this.set({ ...set, preset: "", example: { conversation, set, before } });
  }

  /** Called when a conversation is shown: what an example has set for another one, and the user has not changed since, is as it was before. */
  shown(conversation: string): void {
    const { example } = this;
    if (!example || example.conversation === conversation) return;
    const names = Object.keys(example.set) as (keyof PresetValues)[];
    const isSame = (name: keyof PresetValues): boolean =>
      JSON.stringify(this[name]) === JSON.stringify(example.set[name]);
    const restored = Object.fromEntries(names.filter(isSame).map((name) => [name, example.before[name]]));
    this.set({ ...restored, ...(this.preset === "" && { preset: example.before.preset }), example: undefined });
  }

  get values(): SettingsValues {
    const { model, preset } = this;
    return { model, preset, ...this.presetValues };
  }

  get presetValues(): PresetValues {
    const { system, parameters, tools, toolChoice, hostedTools, format, schema, choices, alternatives } = this;
    return { system, parameters, tools, toolChoice, hostedTools, format, schema, choices, alternatives };
  }
}
