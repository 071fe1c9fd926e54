import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { InspectedRequest } from "../../inspect/inspected-request.ts";
import { MarkedText } from "./marked-text.tsx";
import { countInWords } from "./words.ts";

/** The engine's events, with the time of each batch. */
export function EventsView({ request }: { readonly request: InspectedRequest }): VNode {
  const { pieces, left_out: leftOut } = request.events;
  const text = useMemo(() => {
    const lines = pieces.map(({ ms, events }) =>
      events.map((event) => `${ms.toFixed(1).padStart(9)} ms  ${lineOf(event)}\n`).join(""),
    );
    if (leftOut)
      lines.splice(leftOut.after, 0, `… ${countInWords(leftOut.pieces, "batch")} were not kept in memory …\n`);
    return lines.join("");
  }, [pieces]);
  if (pieces.length === 0) return <p class="note">No engine has sent events.</p>;
  return <MarkedText class="tall" label="Events" text={text} />;
}

function lineOf({ type, ...rest }: { readonly type: string }): string {
  return `${type.padEnd(15)} ${JSON.stringify(rest)}`;
}
