import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { AdminKeyField } from "../check/server-profiles.tsx";

interface Properties {
  /** What the key is for, such as `The models`. */
  readonly subject: string;
  /** What the server says of the key that was entered before; "": nothing. */
  readonly refusal: string;
  readonly onDone: () => void;
}

/** Asks for the admin key. */
export function AdminKeyForm({ subject, refusal, onDone }: Properties): VNode {
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), []);
  return (
    <div class="column">
      <form
        ref={form}
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onDone();
        }}
      >
        <h2>{subject} are for the operator of the server</h2>
        {refusal !== "" && <p class="banner wrong">{refusal}</p>}
        <AdminKeyField />
        <div class="row end">
          <button type="submit" class="main">
            Show {subject.toLowerCase()}
          </button>
        </div>
      </form>
    </div>
  );
}
