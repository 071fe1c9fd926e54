import { expect, test, vi } from "vitest";
import { keepSettings, type Preset, Presets, presetsFile, readPresets, sameValues } from "./presets.ts";
import { freshValues, Settings } from "./settings.ts";

/** A storage in memory. `limit`: in characters, beyond which it is full. */
class MemoryStorage {
  readonly texts = new Map<string, string>();
  readonly #limit: number;

  constructor(limit = Infinity) {
    this.#limit = limit;
  }

  getItem(key: string): string | null {
    return this.texts.get(key) ?? null;
  }

  setItem(key: string, text: string): void {
    if (text.length > this.#limit) throw new Error("The quota has been exceeded.");
    this.texts.set(key, text);
  }
}

const brief: Preset = { name: "Brief", values: { ...freshValues, system: "Be brief." } };
const poet: Preset = {
  name: "Poet",
  values: {
    ...freshValues,
    parameters: { temperature: "1.2", stop: '["END"]' },
    tools: [{ id: 1, name: "rhyme", description: "Finds rhymes", parameters: "{}", canned: "time" }],
    toolChoice: "tool:rhyme",
    format: "schema",
    schema: "{}",
    choices: 2,
    alternatives: 4,
  },
};

test("a file with presets is read as it was written", () => {
  expect(readPresets(presetsFile([brief, poet]))).toEqual([brief, poet]);
});

test("a short file gives the other settings their defaults, and takes parameters as JSON", () => {
  const file = { presets: [{ name: " Cold ", parameters: { temperature: 0, stop: ["a", "b"] } }] };
  expect(readPresets(JSON.stringify(file))).toEqual([
    { name: "Cold", values: { ...freshValues, parameters: { temperature: "0", stop: '["a","b"]' } } },
  ]);
});

test.each([
  ["{", /^The file is not valid JSON: /],
  ["[]", /^The file: expected an object with presets, found an empty list$/],
  ["{}", /^The file has no member "presets"\. Expected \{"presets": /],
  ['{"presets":{}}', /^presets: expected a list, found an object$/],
  ['{"presets":[{}]}', /^presets\[0\]\.name: expected a name of 1 to 100 characters, found nothing$/],
  ['{"presets":[{"name":"a"},{"name":"b","system":7}]}', /^presets\[1\]\.system: expected a string, found 7$/],
  [
    '{"presets":[{"name":"a","sytem":""}]}',
    /^presets\[0\]: expected only the members name, system, .*, found "sytem"$/,
  ],
  [
    '{"presets":[{"name":"a","tools":[{},{"name":null}]}]}',
    /^presets\[0\]\.tools\[1\]\.name: expected a string, found null$/,
  ],
  ['{"presets":[{"name":"a","parameters":[]}]}', /^presets\[0\]\.parameters: expected an object such as /],
  [
    '{"presets":[{"name":"a","format":"xml"}]}',
    /^presets\[0\]\.format: expected one of "text", "json", "schema", found "xml"$/,
  ],
  [
    '{"presets":[{"name":"a","choices":0.5}]}',
    /^presets\[0\]\.choices: expected an integer from 1 to 128, found 0\.5$/,
  ],
  ['{"presets":[{"name":"a","__proto__":{}}]}', /^presets\[0\]: expected only the members .*, found "__proto__"$/],
])("%s is refused with its place", (text, words) => {
  expect(() => readPresets(text)).toThrow(words);
});

test("presets are saved sorted by name, and every change can be undone", () => {
  const storage = new MemoryStorage();
  const presets = new Presets(storage);
  const names = (): string[] => new Presets(storage).list.map(({ name }) => name);
  presets.change([], [poet]);
  const undoAdd = presets.change([], [brief]);
  expect(names()).toEqual(["Brief", "Poet"]);
  undoAdd?.();
  expect(names()).toEqual(["Poet"]);
  const undoDelete = presets.change(["Poet"], []);
  expect(names()).toEqual([]);
  undoDelete?.();
  const undoUpdate = presets.change([], [{ ...poet, values: freshValues }]);
  undoUpdate?.();
  const undoRename = presets.change(["Poet"], [{ ...poet, name: "Bard" }]);
  expect(names()).toEqual(["Bard"]);
  undoRename?.();
  expect(new Presets(storage).list).toEqual([poet]);
});

test("a change keeps what another tab has saved since", () => {
  const storage = new MemoryStorage();
  const [one, other] = [new Presets(storage), new Presets(storage)];
  one.change([], [brief]);
  other.change([], [poet]);
  one.read();
  expect(one.list).toEqual([brief, poet]);
});

test("imported presets replace none: those of other settings get a number, those that are present are left out", () => {
  const presets = new Presets(new MemoryStorage());
  presets.change([], [brief]);
  const other = { ...brief, values: { ...brief.values, system: "Be very brief." } };
  const imported = presets.import([brief, other, other, poet]);
  expect(imported?.added).toBe(3);
  expect(presets.list.map(({ name }) => name)).toEqual(["Brief", "Brief (2)", "Brief (3)", "Poet"]);
  imported?.undo();
  expect(presets.list).toEqual([brief]);
});

test("a full storage, or none, is named, and nothing is changed", () => {
  for (const storage of [new MemoryStorage(10), undefined]) {
    const presets = new Presets(storage);
    expect(presets.change([], [brief])).toBeUndefined();
    expect(presets.problem).toMatch(/^The presets were not saved\. /);
    expect(presets.list).toEqual([]);
  }
});

test("presets that cannot be read are named, and kept when new ones are saved", () => {
  const storage = new MemoryStorage();
  storage.setItem("truewire.presets", '{"presets":[{"nom":"a"}]}');
  const presets = new Presets(storage);
  expect(presets.problem).toMatch(/^The saved presets cannot be read\. presets\[0\]: .* found "nom"\.$/);
  presets.change([], [brief]);
  expect(presets.problem).toBe("");
  expect(storage.getItem("truewire.presets.unreadable")).toContain("nom");
});

test("blank parameters, the order of parameters and the ids of tools make no difference", () => {
  const [tool] = poet.values.tools;
  const parameters = { stop: '["END"]', temperature: "1.2", seed: " " };
  const other = { ...poet.values, parameters, tools: tool ? [{ ...tool, id: 9 }] : [] };
  expect(sameValues(poet.values, other)).toBe(true);
  expect(sameValues(poet.values, { ...other, system: "x" })).toBe(false);
});

test("a visit begins with the settings of the last one; with those of a new page where they cannot be read", () => {
  const storage = new MemoryStorage();
  storage.setItem(
    "truewire.settings",
    JSON.stringify({ model: "m", preset: "Brief", system: "Be brief.", choices: 3 }),
  );
  const settings = new Settings();
  keepSettings(settings, storage);
  expect(settings.values).toEqual({ ...freshValues, model: "m", preset: "Brief", system: "Be brief.", choices: 3 });
  storage.setItem("truewire.settings", '{"system":5}');
  const others = new Settings();
  keepSettings(others, storage);
  expect(others.values).toEqual({ ...freshValues, model: "", preset: "" });
});

// A preset that was saved just before a reload was not the chosen one after it.
test("settings that have changed are saved before the next frame when the page is left", () => {
  const storage = new MemoryStorage();
  const settings = new Settings();
  const save = keepSettings(settings, storage);
  const frames: (() => void)[] = [];
  vi.stubGlobal("requestAnimationFrame", (frame: () => void) => frames.push(frame));
  settings.set({ preset: "Brief" });
  expect(storage.texts.size).toBe(0);
  save();
  expect(JSON.parse(storage.getItem("truewire.settings") ?? "")).toMatchObject({ preset: "Brief" });
  // Later changes of other tests wait for no frame of this one.
  for (const frame of frames) frame();
  vi.unstubAllGlobals();
});
