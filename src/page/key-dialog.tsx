import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { clientKey } from "./api/saved-key.ts";

interface Properties {
  /** The key that was entered before is not one of the server's. */
  readonly refused: boolean;
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

/** Asks for the key of a server that has one. */
export function KeyDialog({ refused, onDone, onCancel }: Properties): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const use = (event: Event): void => {
    event.preventDefault();
    clientKey.value = input.current?.value.trim() ?? "";
    dialog.current?.close();
    onDone();
  };
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onClose={onCancel}>
      <form class="stack" onSubmit={use}>
        <h2 id="key-title">This server wants a key</h2>
        <label class="field">
          <span>API key</span>
          <input
            ref={input}
            type="password"
            autocomplete="off"
            defaultValue={clientKey.value}
            aria-describedby="key-note"
            aria-invalid={refused}
          />
        </label>
        <p id="key-note" class="note">
          {refused && <strong>The server does not know this key. </strong>}
          It is kept for this tab only, and forgotten when the tab is closed.
        </p>
        <div class="row end">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main">
            Use this key
          </button>
        </div>
      </form>
    </dialog>
  );
}
