import type { VNode } from "preact";
import { useId } from "preact/hooks";

/** What ties a control to its label and its note. */
export interface FieldIds {
  readonly id: string;
  readonly "aria-describedby"?: string;
}

interface Properties {
  readonly label: VNode | string;
  /** Description of the control, announced after its name. */
  readonly note?: string;
  readonly children: (ids: FieldIds) => VNode;
}

/** A control with its label above and its note below. */
export function Field({ label, note = "", children }: Properties): VNode {
  const id = useId();
  const noteId = `${id}-note`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, ...(note !== "" && { "aria-describedby": noteId }) })}
      {note !== "" && <Note id={noteId} text={note} />}
    </div>
  );
}

/** A note of the documentation: names in backticks are shown as code. */
export function Note({ text, id }: { readonly text: string; readonly id?: string }): VNode {
  const parts = text.split("`");
  return (
    <p class="note" id={id}>
      {parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
    </p>
  );
}
