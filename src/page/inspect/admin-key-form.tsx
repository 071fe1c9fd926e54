import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { Field } from "../parts/field.tsx";
import { adminKey } from "../api/saved-key.ts";

interface Properties {
  /** The key that was entered before is not one of the server's. */
  readonly refused: boolean;
  readonly onDone: () => void;
}

/** Asks for the admin key of a server that has one. */
export function AdminKeyForm({ refused, onDone }: Properties): VNode {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="column">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          adminKey.value = input.current?.value.trim() ?? "";
          onDone();
        }}
      >
        <h2>The requests of all clients are for the operator of the server</h2>
        <Field
          label="Admin key"
          note={`${refused ? "The server does not know this key. " : ""}It is kept for this tab only, and forgotten when the tab is closed.`}
        >
          {(ids) => <input {...ids} ref={input} type="password" autocomplete="off" aria-invalid={refused} />}
        </Field>
        <div class="row end">
          <button type="submit" class="main">
            Look at the requests
          </button>
        </div>
      </form>
    </div>
  );
}
