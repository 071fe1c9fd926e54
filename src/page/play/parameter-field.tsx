import type { VNode } from "preact";
import { Field } from "../parts/field.tsx";
import type { FieldIds } from "../parts/field.tsx";
import { kindOf, optionsOf } from "./parameter.ts";
import type { Parameter } from "./parameter.ts";
import type { Settings } from "./settings.ts";

/** One parameter: its name as the API has it, what it does, and its value. Blank: it is not sent. */
export function ParameterField({
  parameter,
  settings,
}: {
  readonly parameter: Parameter;
  readonly settings: Settings;
}): VNode {
  const { name, note } = parameter;
  const value = settings.parameters[name] ?? "";
  const set = (text: string): void => settings.set({ parameters: { ...settings.parameters, [name]: text } });
  return (
    <Field label={<code>{name}</code>} note={note}>
      {(ids) => control(parameter, value, set, ids)}
    </Field>
  );
}

function control(parameter: Parameter, value: string, set: (text: string) => void, ids: FieldIds): VNode {
  const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void =>
    set(currentTarget.value);
  switch (kindOf(parameter)) {
    case "choice":
      return (
        <select {...ids} value={value} onChange={onInput}>
          <option value="">default</option>
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
          placeholder="default"
          step={parameter.type === "integer" ? 1 : "any"}
          min={parameter.minimum}
          max={parameter.maximum}
          value={value}
          onInput={onInput}
        />
      );
    case "text":
      return <input {...ids} type="text" placeholder="default" value={value} onInput={onInput} />;
    case "json":
      return <textarea {...ids} rows={1} class="code" placeholder="default" value={value} onInput={onInput} />;
  }
}
