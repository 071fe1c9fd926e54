import type { VNode } from "preact";
import { useChanges } from "../parts/changing.ts";
import { Field } from "../parts/field.tsx";
import type { CheckedServer } from "./checked-server.ts";

interface Properties {
  readonly server: CheckedServer;
  readonly title: string;
}

/** Where a server is, and how it lets one in. */
export function ServerFields({ server, title }: Properties): VNode {
  useChanges(server);
  return (
    <fieldset class="tool stack">
      <legend>{title}</legend>
      <Field label="Base URL">
        {(ids) => (
          <input
            {...ids}
            type="url"
            required
            placeholder="http://127.0.0.1:11434/v1"
            value={server.url}
            onInput={({ currentTarget }) => server.set({ url: currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Key for it" note="If it needs one. It is sent to this server alone, and kept nowhere.">
        {(ids) => (
          <input
            {...ids}
            type="password"
            autocomplete="off"
            value={server.key}
            onInput={({ currentTarget }) => server.set({ key: currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Model to ask">
        {(ids) => (
          <input
            {...ids}
            type="text"
            placeholder="the first that it lists"
            value={server.model}
            onInput={({ currentTarget }) => server.set({ model: currentTarget.value })}
          />
        )}
      </Field>
    </fieldset>
  );
}
