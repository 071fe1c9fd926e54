import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { TimedText, TapeContents } from "../../inspect/inspected-request.ts";
import type { Mark } from "../judge/mark-painter.ts";
import { FramesPainter } from "./frames-painter.ts";

interface Properties {
  readonly label: string;
  readonly tape: TapeContents<TimedText>;
  /** Ordered by offset, each within one chunk. */
  readonly marks: readonly Mark[];
}

/** Pieces of a text with their times. While there are more with each look, only the new ones are painted. */
export function Frames({ label, tape, marks }: Properties): VNode {
  const root = useRef<HTMLDivElement>(null);
  const painter = useRef<{ readonly painter: FramesPainter; readonly marks: readonly Mark[] }>(null);
  useEffect(() => {
    if (!root.current) return;
    const isSame = painter.current?.marks.length === marks.length && tape.left_out === undefined;
    if (!isSame || !painter.current) painter.current = { painter: new FramesPainter(root.current, marks), marks };
    const painting = new AbortController();
    void painter.current.painter.paint(tape, painting.signal);
    return () => painting.abort();
  }, [tape, marks]);
  return <div ref={root} class="frames" tabIndex={0} role="region" aria-label={label} />;
}
