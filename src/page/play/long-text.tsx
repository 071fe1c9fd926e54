import type { TargetedEvent, TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { announcement } from "../parts/changing.ts";
import type { TextLog } from "./text-log.ts";
import { TextPainter } from "./text-painter.ts";
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
    root.current.textContent = "";
    const painter = new TextPainter(root.current);
    const paint = (): void => painter.paint(log.chunks);
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
