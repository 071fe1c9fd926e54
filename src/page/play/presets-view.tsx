import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { announcement, useChanges } from "../parts/changing.ts";
import { Field } from "../parts/field.tsx";
import { saveFile } from "../parts/save-file.ts";
import { openPresets, type Presets, presetsFile, readPresets, sameValues } from "./presets.ts";
import { freshValues, type Settings } from "./settings.ts";

/** The presets of all settings on the page. */
let opened: Presets | undefined;

/** What was done, with what undoes it, or why it was not done. */
interface Notice {
  readonly text: string;
  readonly failed?: boolean;
  readonly undo?: () => void;
}

/** The presets: a list to choose from, and what can be done with the chosen one. */
export function PresetsView({ settings }: { readonly settings: Settings }): VNode {
  const presets = (opened ??= openPresets());
  useChanges(presets);
  const [naming, setNaming] = useState<"save" | "rename">();
  const [notice, setNotice] = useState<Notice>();
  const buttons = useRef<HTMLDivElement>(null);
  const chosen = presets.find(settings.preset);
  const differ = (): boolean =>
    !sameValues(settings.presetValues, presets.find(settings.preset)?.values ?? freshValues);
  const isChanged = differ();

  const say = (next: Notice): void => {
    setNotice(next);
    announcement.say(next.text);
  };
  const done = (text: string, undo: (() => void) | undefined): void =>
    say(undo ? { text, undo } : { text: presets.problem, failed: true });
  const choose = (name: string): void => {
    const { preset, presetValues } = settings;
    const isLost = differ();
    settings.set({ ...(presets.find(name)?.values ?? freshValues), preset: name });
    if (isLost)
      say({
        text: name === "" ? "The settings have their defaults again." : `The settings are those of “${name}”.`,
        undo: () => settings.set({ ...presetValues, preset }),
      });
    else setNotice(undefined);
  };
  const save = (name: string): void => {
    const undo = presets.change([], [{ name, values: settings.presetValues }]);
    const before = settings.preset;
    if (undo) settings.set({ preset: name });
    done(
      name === before ? `“${name}” is updated.` : `“${name}” is saved.`,
      undo &&
        (() => {
          undo();
          settings.set({ preset: before });
        }),
    );
  };
  const rename = (name: string): void => {
    if (!chosen) return;
    const undo = presets.change([chosen.name], [{ ...chosen, name }]);
    if (undo) settings.set({ preset: name });
    done(
      `“${chosen.name}” is now “${name}”.`,
      undo &&
        (() => {
          undo();
          settings.set({ preset: chosen.name });
        }),
    );
  };
  const remove = (): void => {
    if (!chosen) return;
    const { name } = chosen;
    const undo = presets.change([name], []);
    if (undo) settings.set({ preset: "" });
    done(
      `“${name}” is deleted. The settings stay as they are.`,
      undo &&
        (() => {
          undo();
          settings.set({ preset: name });
        }),
    );
  };
  const importFile = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      const result = presets.import(readPresets(await file.text()));
      const text =
        result?.added === 0 ? "All presets of the file are here already." : `${counted(result?.added ?? 0)} imported.`;
      done(text, result?.undo);
    } catch (error) {
      say({ text: `${file.name}: ${error instanceof Error ? error.message : String(error)}.`, failed: true });
    }
  };
  const close = (): void => {
    setNaming(undefined);
    buttons.current?.querySelector("button")?.focus();
  };
  return (
    <div class="presets">
      {presets.list.length > 0 && (
        <Field label="Preset" note={isChanged && chosen ? `The settings differ from those of “${chosen.name}”.` : ""}>
          {(ids) => (
            <select {...ids} value={chosen?.name ?? ""} onChange={({ currentTarget }) => choose(currentTarget.value)}>
              <option value="">{isChanged && !chosen ? "none" : "none: all defaults"}</option>
              {presets.list.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <div class="row" ref={buttons}>
        <button type="button" class="quiet" aria-expanded={naming === "save"} onClick={() => setNaming("save")}>
          Save as preset…
        </button>
        {chosen && isChanged && (
          <button type="button" class="quiet" onClick={() => save(chosen.name)}>
            Update
          </button>
        )}
        {isChanged && (
          <button type="button" class="quiet" onClick={() => choose(settings.preset)}>
            {chosen ? "Revert" : "Reset"}
          </button>
        )}
        {chosen && (
          <>
            <button type="button" class="quiet" aria-expanded={naming === "rename"} onClick={() => setNaming("rename")}>
              Rename…
            </button>
            <button type="button" class="quiet" onClick={remove}>
              Delete
            </button>
          </>
        )}
        {presets.list.length > 0 && (
          <button
            type="button"
            class="quiet"
            onClick={() => saveFile("truewire-presets.json", "application/json", presetsFile(presets.list))}
          >
            Export presets
          </button>
        )}
        <label class="button quiet">
          Import presets
          <input
            class="unseen"
            type="file"
            accept=".json,application/json"
            onChange={({ currentTarget }) => {
              void importFile(currentTarget.files?.[0]).then(() => (currentTarget.value = ""));
            }}
          />
        </label>
      </div>
      {naming && (
        <NameForm
          key={naming}
          first={naming === "rename" ? (chosen?.name ?? "") : ""}
          objection={(name) => presets.objection(name)}
          onName={(name) => {
            close();
            if (naming === "save") save(name);
            else rename(name);
          }}
          onCancel={close}
        />
      )}
      {notice && (
        <div class={notice.failed ? "banner wrong" : "banner"}>
          <p>{notice.text}</p>
          <div class="row end">
            {notice.undo && (
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  notice.undo?.();
                  setNotice(undefined);
                  announcement.say("Undone.");
                  buttons.current?.querySelector("button")?.focus();
                }}
              >
                Undo
              </button>
            )}
            <button type="button" class="quiet" onClick={() => setNotice(undefined)}>
              OK
            </button>
          </div>
        </div>
      )}
      {!notice && presets.problem !== "" && <p class="banner wrong">{presets.problem}</p>}
    </div>
  );
}

interface NameProperties {
  readonly first: string;
  /** Why a name cannot be taken, as a sentence; "" if it can. */
  readonly objection: (name: string) => string;
  readonly onName: (name: string) => void;
  readonly onCancel: () => void;
}

/** Asks for the name of a preset. */
function NameForm({ first, objection, onName, onCancel }: NameProperties): VNode {
  const [problem, setProblem] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const name = input.current?.value.trim() ?? "";
    const found = name === first && name !== "" ? "" : objection(name);
    setProblem(found);
    if (found !== "") return input.current?.focus();
    if (name === first) onCancel();
    else onName(name);
  };
  return (
    <form
      class="stack"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        onCancel();
      }}
    >
      <Field label="Preset name" note={problem}>
        {(ids) => (
          <input {...ids} ref={input} type="text" maxLength={100} defaultValue={first} aria-invalid={problem !== ""} />
        )}
      </Field>
      <div class="row end">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class="main">
          Save
        </button>
      </div>
    </form>
  );
}

function counted(count: number): string {
  return count === 1 ? "1 preset is" : `${count} presets are`;
}
