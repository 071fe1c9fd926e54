import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { paintMarked } from "../judge/mark-painter.ts";
import type { Mark } from "../judge/mark-painter.ts";

interface Properties {
  readonly label: string;
  readonly text: string;
  readonly marks?: readonly Mark[];
  readonly class?: string;
}

/** A text of any length, with marks: only what is in sight is laid out. */
export function MarkedText({ label, text, marks = none, class: name = "" }: Properties): VNode {
  const root = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (!root.current) return;
    const painting = new AbortController();
    void paintMarked(root.current, text, marks, painting.signal);
    return () => painting.abort();
  }, [text, marks]);
  return <pre ref={root} class={`captured ${name}`} tabIndex={0} role="region" aria-label={label} />;
}

const none: readonly Mark[] = [];
