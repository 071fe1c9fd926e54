import { isObject } from "../../wire/core/json.ts";
import { Changing } from "../parts/changing.ts";
import {
  type ExampleSettings,
  freshValues,
  type PresetValues,
  type Settings,
  type SettingsValues,
} from "./settings.ts";
import { InvalidFile, integerAt, listOf, oneOf, parsedFile, recordOf, textAt } from "./readers.ts";
import type { Reader } from "./readers.ts";
import type { PlayTool } from "./tool.ts";

/** Settings under a name. */
export interface Preset {
  readonly name: string;
  readonly values: PresetValues;
}

/** The part of `Storage` that is used. */
type KeptTexts = Pick<Storage, "getItem" | "setItem">;

const presetsKey = "truewire.presets";
const settingsKey = "truewire.settings";

/** Maximum length of a name, in characters. */
const maxNameLength = 100;

/** The presets that this browser keeps, sorted by name. Other tabs change them, too. */
export class Presets extends Changing {
  list: readonly Preset[] = [];
  /** Why the presets could not be read or saved, as a sentence; "" if they were. */
  problem = "";
  readonly #storage: KeptTexts | undefined;
  /** The saved text, if it cannot be read. */
  #unreadable: string | null = null;

  constructor(storage: KeptTexts | undefined) {
    super();
    this.#storage = storage;
    this.read();
  }

  /** Reads what this tab or another one has saved. */
  read(): void {
    const text = this.#storage?.getItem(presetsKey) ?? null;
    this.problem = "";
    try {
      this.list = text === null ? [] : readPresets(text);
    } catch (error) {
      this.problem = `The saved presets cannot be read. ${messageOf(error)}.`;
      this.#unreadable = text;
    }
    this.changed();
  }

  find(name: string): Preset | undefined {
    return this.list.find((preset) => preset.name === name);
  }

  /** Returns why a new preset cannot have this name, as a sentence; "" if it can. */
  objection(name: string): string {
    if (name === "") return "Enter a name.";
    if (name.length > maxNameLength) return `A name has at most ${maxNameLength} characters.`;
    return this.find(name) ? `There is a preset “${name}” already. Enter another name.` : "";
  }

  /**
   * Removes the presets of some names, then adds others in place of those with the same names. Returns a function that undoes it, or
   * undefined if the change could not be saved; `problem` is the reason.
   */
  change(removed: readonly string[], added: readonly Preset[]): (() => void) | undefined {
    // Another tab may have saved presets since.
    this.read();
    const names = new Set([...removed, ...added.map(({ name }) => name)]);
    const before = this.list.filter(({ name }) => names.has(name));
    const kept = this.list.filter(({ name }) => !names.has(name));
    const list = [...kept, ...added].toSorted((a, b) => a.name.localeCompare(b.name));
    if (!this.#save(list)) return undefined;
    this.list = list;
    this.changed();
    return () => void this.change([...names], before);
  }

  /** Adds the presets of a file. One whose name another preset has gets a number; one that is here already is left out. */
  import(presets: readonly Preset[]): { readonly added: number; readonly undo: () => void } | undefined {
    const added: Preset[] = [];
    for (const preset of presets) {
      const taken = (name: string): Preset | undefined => this.find(name) ?? added.find((other) => other.name === name);
      const present = taken(preset.name);
      if (present && sameValues(present.values, preset.values)) continue;
      let { name } = preset;
      for (let number = 2; taken(name); number++) name = `${preset.name} (${number})`;
      added.push({ ...preset, name });
    }
    const undo = this.change([], added);
    return undo && { added: added.length, undo };
  }

  #save(list: readonly Preset[]): boolean {
    try {
      if (!this.#storage) throw new Error("This browser does not let the page store anything.");
      if (this.#unreadable !== null) this.#storage.setItem(`${presetsKey}.unreadable`, this.#unreadable);
      this.#storage.setItem(presetsKey, presetsFile(list));
      this.#unreadable = null;
      this.problem = "";
      return true;
    } catch (error) {
      // A full storage, for example.
      this.problem = `The presets were not saved. ${messageOf(error)}`;
      this.changed();
      return false;
    }
  }
}

/** `localStorage`, or undefined where the browser refuses it. */
function browserStorage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

/** Opens the presets of this browser, and follows the changes of other tabs. */
export function openPresets(): Presets {
  const presets = new Presets(browserStorage());
  addEventListener("storage", ({ key }) => {
    if (key === presetsKey || key === null) presets.read();
  });
  return presets;
}

/**
 * Gives settings the values of the last visit, and saves them in the frame after each change. Returns a function that saves them
 * immediately: no frame follows when the page is left.
 */
export function keepSettings(settings: Settings, storage: KeptTexts | undefined = browserStorage()): () => void {
  try {
    const text = storage?.getItem(settingsKey) ?? null;
    if (text !== null) settings.set(readSettings(text));
  } catch {
    // Written by another version of the page: this visit begins with the settings of a new page.
  }
  const textOf = (): string => settingsText(settings, settings.chosenModel);
  let saved = textOf();
  const save = (): void => {
    const text = textOf();
    if (text === saved) return;
    saved = text;
    try {
      storage?.setItem(settingsKey, text);
    } catch {
      // The storage is full: the settings of this visit are not kept.
    }
  };
  settings.subscribe(save);
  return save;
}

/** Returns settings as a text, for `readSettings`. */
export function settingsText(settings: Settings, model: string): string {
  const { preset, example } = settings;
  return JSON.stringify({
    ...storedForm(settings),
    model,
    preset,
    ...(example && { example: storedExample(example) }),
  });
}

function storedExample({ conversation, set, before }: ExampleSettings): object {
  return { conversation, set: storedForm(set), before: { ...storedForm(before), preset: before.preset } };
}

/** Whether two presets set the same. */
export function sameValues(one: PresetValues, other: PresetValues): boolean {
  return JSON.stringify(storedForm(one)) === JSON.stringify(storedForm(other));
}

/** The text of a file with presets. */
export function presetsFile(presets: readonly Preset[]): string {
  const written = presets.map(({ name, values }) => ({ name, ...storedForm(values) }));
  return `${JSON.stringify({ presets: written }, null, 2)}\n`;
}

/** Values as they are stored: in one order, without blank parameters and without the ids of tools. */
function storedForm({
  system,
  parameters,
  tools,
  toolChoice,
  hostedTools,
  format,
  schema,
  choices,
  alternatives,
}: PresetValues): object {
  const entered = Object.entries(parameters).filter(([, text]) => text.trim() !== "");
  return {
    system,
    parameters: Object.fromEntries(entered.toSorted(([a], [b]) => (a < b ? -1 : 1))),
    tools: tools.map(({ name, description, parameters, canned }) => ({ name, description, parameters, canned })),
    toolChoice,
    ...(hostedTools.length > 0 && { hostedTools }),
    format,
    schema,
    choices,
    ...(alternatives !== undefined && { alternatives }),
  };
}

/** Reads a file with presets. Throws an error that names the place of the first mistake, such as `presets[0].tools[1].name`. */
export function readPresets(text: string): readonly Preset[] {
  const { presets } = members(parsedFile(text), "", { presets: listOf(presetAt) });
  if (!presets)
    throw new Error(
      'The file has no member "presets". Expected {"presets": [{"name": "Brief", "system": "Be brief."}]}',
    );
  return presets;
}

/** Reads a text of `settingsText`. Throws an error if another version of the page has written it. */
export function readSettings(text: string): Partial<SettingsValues> {
  const readers = { ...presetMembers, model: textAt, preset: textAt, example: exampleAt };
  return valuesOf(members(parsedFile(text), "", readers));
}

/** A parameter: its text, or the value itself. */
const parameterAt: Reader<string> = (value) => (typeof value === "string" ? value : JSON.stringify(value));

const toolMembers = { name: textAt, description: textAt, parameters: textAt, canned: textAt };

const presetMembers = {
  system: textAt,
  parameters: (value, place) => {
    if (!isObject(value)) throw new InvalidFile(place, 'an object such as {"temperature": 0.5}', value);
    return recordOf(parameterAt)(value, place);
  },
  tools: listOf((value, place): Omit<PlayTool, "id"> => {
    const { name = "", description = "", parameters = "", canned = "" } = members(value, place, toolMembers);
    return { name, description, parameters, canned };
  }),
  toolChoice: textAt,
  hostedTools: listOf(textAt),
  format: oneOf<PresetValues["format"]>(["text", "json", "schema"]),
  schema: textAt,
  choices: integerAt(1, 128),
  alternatives: integerAt(0, 20),
} satisfies Record<keyof PresetValues, Reader<unknown>>;

function presetAt(value: unknown, place: string): Preset {
  const { name, ...values } = members(value, place, { name: textAt, ...presetMembers });
  if (name === undefined || name.trim() === "" || name.length > maxNameLength)
    throw new InvalidFile(`${place}.name`, `a name of 1 to ${maxNameLength} characters`, name);
  return { name: name.trim(), values: { ...freshValues, ...valuesOf(values) } };
}

function exampleAt(value: unknown, place: string): ExampleSettings {
  const readers = { conversation: textAt, set: settingsAt, before: settingsAt };
  const { conversation = "", set, before } = members(value, place, readers);
  return { conversation, set: set ?? freshValues, before: { preset: "", ...(before ?? freshValues) } };
}

function settingsAt(value: unknown, place: string): PresetValues & { readonly preset?: string } {
  return { ...freshValues, ...valuesOf(members(value, place, { ...presetMembers, preset: textAt })) };
}

/** Gives the tools ids of this page. */
function valuesOf<T extends { readonly tools?: readonly Omit<PlayTool, "id">[] }>(
  read: T,
): Omit<T, "tools"> & { readonly tools: readonly PlayTool[] } {
  return { ...read, tools: (read.tools ?? []).map((tool, at) => ({ id: at + 1, ...tool })) };
}

/** The members of an object, each read by its reader. Throws an error for a member without one. */
function members<T extends Record<string, Reader<unknown>>>(
  value: unknown,
  place: string,
  readers: T,
): { readonly [Name in keyof T]?: ReturnType<T[Name]> } {
  const names = Object.keys(readers).join(", ");
  if (!isObject(value)) throw new InvalidFile(place === "" ? "The file" : place, `an object with ${names}`, value);
  const read = Object.entries(value).map(([name, member]) => {
    const at = place === "" ? name : `${place}.${name}`;
    const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
    if (!reader) throw new InvalidFile(place === "" ? "The file" : place, `only the members ${names}`, name);
    return [name, reader(member, at)];
  });
  return Object.fromEntries(read) as { readonly [Name in keyof T]?: ReturnType<T[Name]> };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
