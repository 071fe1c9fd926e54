import type { VNode } from "preact";
import { Field } from "../parts/field.tsx";
import type { Settings } from "./settings.ts";

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
