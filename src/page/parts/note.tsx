import type { VNode } from "preact";

/** A note of the documentation: names in backticks are shown as code. */
export function Note({ text, id }: { readonly text: string; readonly id?: string }): VNode {
  const parts = text.split("`");
  return (
    <p class="note" id={id}>
      {parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
    </p>
  );
}
