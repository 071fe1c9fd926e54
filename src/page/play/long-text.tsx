import type { TargetedEvent, TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { TokenLogprob } from "../../wire/core/events.ts";
import { announcement } from "../parts/changing.ts";
import { LinePainter } from "../parts/line-painter.ts";
import type { TextChunk, TextLog } from "./text-log.ts";
import { pointed, tokensInWords } from "./token-tip.tsx";

interface Properties {
  readonly log: TextLog;
  /** The text's tokens can be looked at, with the pointer and with the arrow keys. */
  readonly tokens?: boolean;
  readonly class?: string;
}

/** A text that grows while it is shown. Preact knows nothing of what is inside. */
export function LongText({ log, tokens = false, class: name = "" }: Properties): VNode {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!root.current) return;
    const painter = new LinePainter(root.current);
    let next = 0;
    const paint = (): void => {
      for (let chunk = log.chunks[next]; chunk; chunk = log.chunks[++next]) addChunk(painter, chunk, next);
    };
    paint();
    return log.subscribe(paint);
  }, [log]);
  const classes = `long ${name}`;
  if (!tokens) return <div key="plain" ref={root} class={classes} />;

  const point = (span: Element | null | undefined): HTMLElement | undefined => {
    const chunk = span instanceof HTMLElement ? log.chunks[Number(span.dataset["chunk"])] : undefined;
    if (!chunk || !(span instanceof HTMLElement)) {
      pointed.hide();
      return undefined;
    }
    pointed.show(chunk.tokens, span.getBoundingClientRect());
    return span;
  };
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const box = event.currentTarget;
    const current = box.querySelector(".current");
    const at = current instanceof HTMLElement ? Number(current.dataset["chunk"]) + step : 0;
    const next = box.querySelector(`[data-chunk="${at}"]`);
    if (!next) return;
    current?.classList.remove("current");
    next.classList.add("current");
    next.scrollIntoView({ block: "nearest" });
    point(next);
    announcement.say(tokensInWords(log.chunks[at]?.tokens ?? []));
  };
  const leave = ({ currentTarget }: TargetedEvent<HTMLDivElement>): void => {
    currentTarget.querySelector(".current")?.classList.remove("current");
    pointed.hide();
  };
  return (
    <div
      key="plain"
      ref={root}
      class={`${classes} tokens`}
      role="group"
      aria-label="The answer, token by token; arrow keys go from one to the next"
      tabIndex={0}
      onPointerOver={({ target }) => point(target instanceof Element ? target.closest("[data-chunk]") : null)}
      onPointerLeave={leave}
      onKeyDown={move}
      onBlur={leave}
    />
  );
}

function addChunk(painter: LinePainter, { text, tokens }: TextChunk, index: number): void {
  if (tokens.length === 0) return painter.write(text);
  const span = document.createElement("span");
  span.dataset["chunk"] = String(index);
  span.dataset["sure"] = String(sureness(tokens));
  painter.add(text, span);
}

/** From 4, nearly certain, to 0, a surprise: what page.css tints. Of several tokens, the least sure counts. */
function sureness(tokens: readonly TokenLogprob[]): number {
  const probability = Math.exp(Math.min(...tokens.map(({ logprob }) => logprob ?? 0)));
  return [0.05, 0.2, 0.5, 0.9].filter((limit) => probability >= limit).length;
}
