import type { Reasoning } from "../format.ts";
import { renderTurn, sentinel } from "../read-back.ts";
import type { Render } from "../read-back.ts";

/** The markers of a thought: around one that the template writes, else as they stand in any turn. undefined: it knows none. */
export function learnReasoning(render: Render): Reasoning | undefined {
  const turn = renderTurn(render, [
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: sentinel.thought },
        { type: "text", text: sentinel.answer },
      ],
    },
  ]);
  const at = turn?.indexOf(sentinel.thought) ?? -1;
  if (turn !== null && at >= 0) {
    const open = /(<[^<>]+>|\[[A-Z]+\])\s*$/.exec(turn.slice(0, at))?.[1];
    const close = /^\s*(<[^<>]+>|\[\/?[A-Z]+\])/.exec(turn.slice(at + sentinel.thought.length))?.[1];
    if (open !== undefined && close !== undefined) return reasoningOf(open, close);
    // The opener may stand in the prompt already.
    if (close !== undefined) return reasoningOf(close.replace("/", ""), close);
  }
  const written = /(<[^<>/]*think[^<>]*>)\s*(<[^<>]*\/[^<>]*think[^<>]*>)/.exec(turn ?? "");
  return written ? reasoningOf(written[1] ?? "", written[2] ?? "") : undefined;
}

function reasoningOf(open: string, close: string): Reasoning {
  return { open: [open], close: [close], assume: "outside" };
}
