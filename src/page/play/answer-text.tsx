import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { MarkdownPainter } from "../markdown/markdown-painter.tsx";
import { Changing, useChanges } from "../parts/changing.ts";
import { LongText } from "./long-text.tsx";
import { indentedJson } from "../parts/json-text.ts";
import { isJsonText } from "../../wire/core/json.ts";
import type { TextChunk, TextLog } from "./text-log.ts";

const storedName = "truewire-raw-text";

/** Whether answers are shown as they were written. The browser remembers it for this page. */
class RawText extends Changing {
  #on = stored() === "yes";

  get on(): boolean {
    return this.#on;
  }

  toggle(): void {
    this.#on = !this.#on;
    try {
      if (this.#on) localStorage.setItem(storedName, "yes");
      else localStorage.removeItem(storedName);
    } catch {
      // A browser may forbid storage.
    }
    this.changed();
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(storedName);
  } catch {
    return null;
  }
}

const rawText: RawText = new RawText();

/** A switch for all answers. It is shown with the question already, so that Markdown is loaded before the first words arrive. */
export function RawTextButton(): VNode | null {
  useChanges(rawText);
  if (!usePainter()) return null;
  return (
    <button type="button" class="quiet" aria-pressed={rawText.on} onClick={() => rawText.toggle()}>
      Raw text
    </button>
  );
}

let loadedPainter: typeof MarkdownPainter | undefined;

/** Loads Markdown with the first answer, and returns it when it is there. Without it, texts are shown as they were written. */
function usePainter(): typeof MarkdownPainter | undefined {
  const [loaded, setLoaded] = useState(() => loadedPainter);
  useEffect(() => {
    if (loaded) return;
    import("../markdown/markdown-painter.tsx").then(
      (found) => {
        loadedPainter = found.MarkdownPainter;
        setLoaded(() => loadedPainter);
      },
      () => {},
    );
  }, []);
  return loaded;
}

interface Properties {
  readonly log: TextLog;
  /** More text may follow. */
  readonly open: boolean;
  /** The request asked for JSON. */
  readonly json?: boolean;
  readonly class?: string;
}

/**
 * A text of a model, rendered as Markdown, or as code if it is JSON. With token probabilities it is shown as it was written: each token is
 * an element of its own then.
 */
export function AnswerText({ log, open, json = false, class: name = "" }: Properties): VNode {
  useChanges(rawText);
  const loaded = usePainter();
  if (log.hasTokens) return <LongText key="tokens" log={log} tokens class={name} />;
  if (rawText.on || !loaded) return <LongText key="raw" log={log} class={name} />;
  return <RenderedText key="rendered" log={log} open={open} json={json} class={name} Painter={loaded} />;
}

/** From this time on, a text is painted less often than once a frame. In milliseconds. */
const slowPaintMs = 10;

/** The rest of a longer text, such as that of a conversation which is opened again, is painted in the next turn. In characters. */
const maxPainted = 65_536;

/** Its text is painted outside Preact's tree: new words cost the same after a hundred thousand. */
function RenderedText({
  log,
  open,
  json = false,
  class: name = "",
  Painter,
}: Properties & { readonly Painter: typeof MarkdownPainter }): VNode {
  const root = useRef<HTMLDivElement>(null);
  const [asJson, setAsJson] = useState(() => isJson(log, json, open));
  const paint = useRef<() => void>(() => {});
  const isOpen = useRef(open);
  isOpen.current = open;
  // The frame that shows an answer as complete also shows its last words.
  useLayoutEffect(() => {
    if (!root.current) return;
    const painter = new Painter(root.current);
    let taken = 0;
    let added = asJson ? jsonFence : "";
    let formatted = false;
    let dueAt = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    paint.current = () => {
      clearTimeout(timer);
      const begun = performance.now();
      if (isOpen.current && begun < dueAt) {
        timer = setTimeout(paint.current, dueAt - begun);
        return;
      }
      if (isJson(log, json, isOpen.current) !== asJson) return setAsJson(!asJson);
      added += textOf(log.chunks.slice(taken));
      taken = log.chunks.length;
      if (asJson && !isOpen.current && !formatted) {
        painter.clear();
        added = jsonFence + indentedJson(log.toString());
        formatted = true;
      }
      const part = added.slice(0, maxPainted);
      added = added.slice(maxPainted);
      painter.paint(part, isOpen.current || added !== "");
      // A hostile block may take long: it gets a quarter of the time, and the page stays responsive.
      const ms = performance.now() - begun;
      dueAt = ms < slowPaintMs ? 0 : begun + 4 * ms;
      if (added !== "") timer = setTimeout(paint.current, Math.max(0, dueAt - performance.now()));
    };
    const stop = log.subscribe(() => paint.current());
    return () => {
      stop();
      clearTimeout(timer);
      painter.clear();
    };
  }, [log, asJson]);
  useLayoutEffect(() => paint.current(), [log, asJson, open]);
  return <div ref={root} class={`long markdown ${name}`} />;
}

/** Opens a code block that no line of a JSON text closes. */
const jsonFence = "~~~~~~~~ json\n";

function textOf(chunks: readonly TextChunk[]): string {
  return chunks.map(({ text }) => text).join("");
}

/** Whether a text is shown as JSON: it begins like JSON, and is JSON once it is complete; or the request asked for JSON. */
function isJson(log: TextLog, requested: boolean, open: boolean): boolean {
  if (requested) return true;
  // No more is needed to see how it begins, and a server may send each character alone.
  const beginsLikeJson = /^\s*(?:\{\s*["}]|\[\s*[{"])/.test(textOf(log.chunks.slice(0, 40)));
  return beginsLikeJson && (open || isJsonText(log.toString()));
}
