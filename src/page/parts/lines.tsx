import type { RefObject, VNode } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { LinePainter } from "./line-painter.ts";
import type { Mark } from "./line-painter.ts";
import { SearchBar } from "./search-bar.tsx";

/** A part of a text. */
export interface TextPart {
  readonly text: string;
  /** Shown above it, such as the time when it came. */
  readonly title?: string;
  /** This number of characters before it was left out. */
  readonly leftOut?: number;
}

/** Where `Lines` shows a place of its text. */
export interface LinesHandle {
  show(start: number): void;
}

interface Properties {
  readonly label: string;
  /** A text, or its parts in order. If there are more parts with each look, only the new ones are painted. */
  readonly text: string | readonly TextPart[];
  readonly marks?: readonly Mark[];
  readonly class?: string;
  readonly handle?: RefObject<LinesHandle | null>;
}

/** A longer text can be searched. In characters. */
const searchedLength = 2000;
/** The time after which painting yields, in milliseconds. */
const atOnceMs = 8;
/** A text without parts is painted in parts of this length, in characters. */
const partLength = 50_000;

const none: readonly Mark[] = [];

/** A text of any length, with marks and a search. */
export function Lines({ label, text, marks = none, class: name = "captured", handle }: Properties): VNode {
  const root = useRef<HTMLPreElement>(null);
  const painted = useRef<Painted>(null);
  useEffect(() => {
    if (!root.current) return;
    if (!painted.current || !continues(painted.current, text, marks))
      painted.current = { painter: new LinePainter(root.current, marks), text, marks, next: 0 };
    else painted.current.text = text;
    const painting = new AbortController();
    void paint(painted.current, painting.signal);
    return () => painting.abort();
  }, [text, marks]);
  const show = (start: number, end = start): void => {
    painted.current?.painter.show(start, end);
  };
  if (handle) {
    handle.current = {
      show: (start) => {
        show(start);
        root.current?.focus({ preventScroll: true });
      },
    };
  }
  const find = useCallback((query: string) => findInText(text, query), [text]);
  const copy = (event: ClipboardEvent): void => {
    const selection = getSelection();
    if (!selection || selection.isCollapsed || !painted.current || typeof text !== "string") return;
    event.preventDefault();
    event.clipboardData?.setData("text/plain", painted.current.painter.textIn(selection.getRangeAt(0)));
  };
  return (
    <>
      {lengthOf(text) > searchedLength && (
        <SearchBar
          label={`Search: ${label}`}
          field={`Search in ${label.toLowerCase()}`}
          find={find}
          onFound={([start, end]) => show(start, end)}
        />
      )}
      <pre ref={root} class={name} tabIndex={0} role="region" aria-label={label} onCopy={copy} />
    </>
  );
}

interface Painted {
  readonly painter: LinePainter;
  text: string | readonly TextPart[];
  readonly marks: readonly Mark[];
  /** Number of the next part, or offset in a text without parts. */
  next: number;
}

/** Whether a text begins with what is painted, with the same marks. */
function continues(painted: Painted, text: string | readonly TextPart[], marks: readonly Mark[]): boolean {
  if (typeof text === "string" || typeof painted.text === "string") return false;
  const isWhole = [...text, ...painted.text].every(({ leftOut }) => leftOut === undefined);
  return isWhole && painted.marks.length === marks.length && painted.text[0]?.text === text[0]?.text;
}

/** Paints what is not painted yet. Resolves when all is, or `signal` is aborted. */
async function paint(painted: Painted, signal: AbortSignal): Promise<void> {
  const { painter, text } = painted;
  let since = performance.now();
  while (painted.next < text.length && !signal.aborted) {
    if (typeof text === "string") {
      painter.write(text.slice(painted.next, painted.next + partLength));
      painted.next += partLength;
    } else {
      const part = text[painted.next++];
      if (part) addPart(painter, part);
    }
    if (performance.now() - since < atOnceMs) continue;
    await new Promise((resolve) => setTimeout(resolve));
    since = performance.now();
  }
}

function addPart(painter: LinePainter, { text, title = "", leftOut = 0 }: TextPart): void {
  const frame = document.createElement("div");
  frame.className = "frame";
  const above = document.createElement("span");
  above.textContent = title;
  const shown = document.createElement("code");
  frame.append(above, shown);
  let end = text.length;
  while (text[end - 1] === "\n") end--;
  painter.skip(leftOut);
  painter.add(text, frame, shown, text.slice(0, end));
}

function lengthOf(text: string | readonly TextPart[]): number {
  return typeof text === "string" ? text.length : text.reduce((sum, part) => sum + part.text.length, 0);
}

/** Finds a text in any case. Yields the beginning and the end of each match, and undefined where the page should do other things. */
function* findInText(
  text: string | readonly TextPart[],
  query: string,
): Generator<readonly [number, number] | undefined, void, undefined> {
  const sought = new RegExp(query.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "giu");
  let offset = 0;
  for (const part of typeof text === "string" ? [{ text }] : text) {
    offset += ("leftOut" in part ? part.leftOut : undefined) ?? 0;
    for (const { index, 0: match } of part.text.matchAll(sought)) yield [offset + index, offset + index + match.length];
    offset += part.text.length;
    if (part.text.length > partLength) yield undefined;
  }
}
