import type { VNode } from "preact";
import { useId } from "preact/hooks";
import { Note } from "./note.tsx";

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
