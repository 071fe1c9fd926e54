import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Models } from "../api/models.ts";
import { useChanges } from "../parts/changing.ts";
import { Field, type FieldIds } from "../parts/field.tsx";
import { defaultInWords, defaultOf, kindOf, matching, optionsOf, type Parameter, sorted } from "./parameter.ts";
import type { KnownDefault } from "../api/models.ts";
import { PresetsView } from "./presets-view.tsx";
import type { Settings } from "./settings.ts";
import { ToolSettings } from "./tool-settings.tsx";

/** What is set for the questions to come. */
export function SettingsPanel({ models, settings }: { readonly models: Models; readonly settings: Settings }): VNode {
  useChanges(settings);
  const noteOf = (name: string): string => settings.table.find((parameter) => parameter.name === name)?.note ?? "";
  return (
    <>
      <Field label="Model">
        {(ids) => (
          <select
            {...ids}
            value={settings.model}
            onChange={({ currentTarget }) => settings.set({ model: currentTarget.value })}
          >
            {models.names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <PresetsView settings={settings} />
      <Field label="System prompt">
        {(ids) => (
          <textarea
            {...ids}
            rows={3}
            dir="auto"
            value={settings.system}
            onInput={({ currentTarget }) => settings.set({ system: currentTarget.value })}
          />
        )}
      </Field>
      <ParameterSettings settings={settings} defaults={models.defaults.get(settings.model)} />
      <ToolSettings settings={settings} hosted={models.hostedTools ?? ["web_search"]} />
      <FormatSettings settings={settings} note={noteOf("response_format")} />
      <details>
        <summary>
          Choices and probabilities
          {(settings.choices > 1 || settings.alternatives !== undefined) && <span class="count">set</span>}
        </summary>
        <div class="stack">
          <Field label="Choices side by side" note={`\`n\`: ${noteOf("n")}`}>
            {(ids) => (
              <input
                {...ids}
                type="number"
                min={1}
                max={128}
                value={settings.choices}
                onInput={({ currentTarget }) =>
                  settings.set({ choices: Math.max(1, currentTarget.valueAsNumber || 1) })
                }
              />
            )}
          </Field>
          <label class="check">
            <input
              type="checkbox"
              checked={settings.alternatives !== undefined}
              onChange={({ currentTarget }) => settings.set({ alternatives: currentTarget.checked ? 4 : undefined })}
            />
            Token probabilities
          </label>
          {settings.alternatives !== undefined && (
            <Field label="Alternatives to each token" note={`\`top_logprobs\`: ${noteOf("top_logprobs")}`}>
              {(ids) => (
                <input
                  {...ids}
                  type="number"
                  min={0}
                  max={20}
                  value={settings.alternatives}
                  onInput={({ currentTarget }) => settings.set({ alternatives: currentTarget.valueAsNumber || 0 })}
                />
              )}
            </Field>
          )}
        </div>
      </details>
    </>
  );
}

interface ParameterProperties {
  readonly settings: Settings;
  /** Of the chosen model; undefined: not known. */
  readonly defaults: ReadonlyMap<string, KnownDefault> | undefined;
}

/** The common parameters; a search finds the others. */
function ParameterSettings({ settings, defaults }: ParameterProperties): VNode {
  const [search, setSearch] = useState("");
  const { common, others } = sorted(settings.table);
  const isSet = ({ name }: Parameter): boolean => (settings.parameters[name] ?? "").trim() !== "";
  const setCount = [...common, ...others].filter(isSet).length;
  const othersSet = others.filter(isSet).length;
  const isSearch = search.trim() !== "";
  const found = matching([...common, ...others], search.trim());
  const fieldOf = (parameter: Parameter): VNode => (
    <ParameterField
      key={parameter.name}
      parameter={parameter}
      settings={settings}
      known={defaultOf(parameter, defaults)}
    />
  );
  return (
    <details>
      <summary>Parameters{setCount > 0 && <span class="count">{setCount} set</span>}</summary>
      <div class="stack">
        <Field label={`Find one of ${common.length + others.length} parameters`}>
          {(ids) => (
            <input
              {...ids}
              type="search"
              placeholder="Name or effect"
              value={search}
              onInput={({ currentTarget }) => setSearch(currentTarget.value)}
            />
          )}
        </Field>
        {isSearch ? (
          <div class="inner stack">
            {found.length === 0 && <p class="note">No parameter has “{search.trim()}” in its name or description.</p>}
            {found.map(fieldOf)}
          </div>
        ) : (
          <>
            {common.map(fieldOf)}
            <details class="inner">
              <summary>
                {others.length} more{othersSet > 0 && <span class="count">{othersSet} set</span>}
              </summary>
              <div class="stack">{others.map(fieldOf)}</div>
            </details>
          </>
        )}
      </div>
    </details>
  );
}

/** What the answer must look like. */
export function FormatSettings({ settings, note }: { readonly settings: Settings; readonly note: string }): VNode {
  const { format, schema } = settings;
  return (
    <details>
      <summary>Form of the answer{format !== "text" && <span class="count">JSON</span>}</summary>
      <div class="stack">
        <Field label="The answer is" note={`\`response_format\`: ${note}`}>
          {(ids) => (
            <select
              {...ids}
              value={format}
              onChange={({ currentTarget }) => settings.set({ format: currentTarget.value as Settings["format"] })}
            >
              <option value="text">text</option>
              <option value="json">JSON, any object</option>
              <option value="schema">JSON that fits a schema</option>
            </select>
          )}
        </Field>
        {format === "schema" && (
          <Field label="JSON schema">
            {(ids) => (
              <textarea
                {...ids}
                rows={6}
                class="code"
                value={schema}
                onInput={({ currentTarget }) => settings.set({ schema: currentTarget.value })}
              />
            )}
          </Field>
        )}
      </div>
    </details>
  );
}

/** One parameter: its name as the API has it, its description, and its value. Blank: it is not sent, and the default applies. */
function ParameterField({
  parameter,
  settings,
  known,
}: {
  readonly parameter: Parameter;
  readonly settings: Settings;
  readonly known: KnownDefault | undefined;
}): VNode {
  const { name, note } = parameter;
  const value = settings.parameters[name] ?? "";
  const set = (text: string): void => settings.set({ parameters: { ...settings.parameters, [name]: text } });
  const placeholder = known ? defaultInWords(known) : "default";
  // The placeholder is not seen.
  const described = known && value !== "" ? `${note === "" ? "" : `${note} `}Without a value: ${placeholder}.` : note;
  return (
    <Field label={<code>{name}</code>} note={described}>
      {(ids) => control(parameter, value, set, ids, placeholder)}
    </Field>
  );
}

function control(
  parameter: Parameter,
  value: string,
  set: (text: string) => void,
  ids: FieldIds,
  placeholder: string,
): VNode {
  const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void =>
    set(currentTarget.value);
  switch (kindOf(parameter)) {
    case "choice":
      return (
        <select {...ids} value={value} onChange={onInput}>
          <option value="">{placeholder}</option>
          {optionsOf(parameter).map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          {...ids}
          type="number"
          placeholder={placeholder}
          step={parameter.type === "integer" ? 1 : "any"}
          min={parameter.minimum}
          max={parameter.maximum}
          value={value}
          onInput={onInput}
        />
      );
    case "text":
      return <input {...ids} type="text" placeholder={placeholder} value={value} onInput={onInput} />;
    case "json":
      return <textarea {...ids} rows={1} class="code" placeholder={placeholder} value={value} onInput={onInput} />;
  }
}
