import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RequestSummary } from "../../inspect/inspected-request.ts";
import type { Findings, Found } from "./findings.ts";
import { countInWords, timeInWords } from "./words.ts";

interface Properties {
  readonly requests: readonly RequestSummary[];
  readonly chosen: string;
  readonly findings: Findings;
  readonly onChoose: (id: string) => void;
}

/** Of a row, in CSS pixels; page.css has the same. */
const rowHeight = 80;
/** Number of rows that are rendered above and below the visible ones. */
const margin = 8;

/** A list of thousands: only rows in sight are there. One is chosen with the pointer or the arrow keys. */
export function RequestList({ requests: newestFirst, chosen, findings, onChoose }: Properties): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 800 });
  const look = (): void => {
    const { current } = box;
    if (current) setSight({ top: current.scrollTop, height: current.clientHeight });
  };
  useEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const requests = useMemo(() => inThreads(newestFirst), [newestFirst]);
  const turns = useMemo(() => turnsOf(requests), [requests]);
  const at = requests.findIndex(({ id }) => id === chosen);
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const page = Math.max(1, Math.floor(sight.height / rowHeight) - 1);
    const last = requests.length - 1;
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(last, to));
    onChoose(requests[next]?.id ?? "");
    const { current } = box;
    if (!current) return;
    const top = next * rowHeight;
    if (top < current.scrollTop) current.scrollTop = top;
    if (top + rowHeight > current.scrollTop + current.clientHeight)
      current.scrollTop = top + rowHeight - current.clientHeight;
  };
  const first = Math.max(0, Math.floor(sight.top / rowHeight) - margin);
  const end = Math.min(requests.length, Math.ceil((sight.top + sight.height) / rowHeight) + margin);
  const shown = requests.slice(first, end).map((request, index) => ({ request, place: first + index }));
  // The chosen one is named by its id, so it is there also while it is out of sight.
  const chosenOne = requests[at];
  if (chosenOne && (at < first || at >= end)) shown.push({ request: chosenOne, place: at });
  return (
    <div
      ref={box}
      class="request-list"
      role="listbox"
      aria-label="Requests, the newest first"
      tabIndex={0}
      aria-activedescendant={chosenOne && `row-${chosen}`}
      onScroll={look}
      onKeyDown={move}
    >
      <div class="request-rows" role="presentation" style={{ height: `${requests.length * rowHeight}px` }}>
        {shown.map(({ request, place }) => (
          <div
            key={request.id}
            id={`row-${request.id}`}
            class={
              request.thread !== undefined && request.thread === requests[place - 1]?.thread
                ? "request-row continued"
                : "request-row"
            }
            role="option"
            aria-selected={request.id === chosen}
            aria-setsize={requests.length}
            aria-posinset={place + 1}
            style={{ transform: `translateY(${place * rowHeight}px)` }}
            onClick={() => onChoose(request.id)}
          >
            <RequestRow
              request={request}
              found={findings.of(request.id)}
              isInThread={(turns.get(request.thread) ?? 0) > 1}
            />
          </div>
        ))}
      </div>
    </div>
  );
}

/** The requests of one conversation one after the other, at the place of the newest of them. */
export function inThreads(newestFirst: readonly RequestSummary[]): readonly RequestSummary[] {
  const threads = new Map<string, RequestSummary[]>();
  for (const request of newestFirst) {
    const { id, thread = id } = request;
    const others = threads.get(thread);
    if (others) others.push(request);
    else threads.set(thread, [request]);
  }
  return [...threads.values()].flat();
}

/** The number of listed requests of each conversation. */
function turnsOf(requests: readonly RequestSummary[]): ReadonlyMap<string | undefined, number> {
  const turns = new Map<string | undefined, number>();
  for (const { thread } of requests) if (thread !== undefined) turns.set(thread, (turns.get(thread) ?? 0) + 1);
  return turns;
}

interface RowProperties {
  readonly request: RequestSummary;
  readonly found?: Found | undefined;
  /** Other requests of its conversation are listed. */
  readonly isInThread?: boolean;
}

/** What happened in one request. */
export function RequestRow({ request, found, isInThread = false }: RowProperties): VNode {
  const { at, method, path, model, outcome, status, ms, repairs, error, snippet, calls } = request;
  const { turn, snippet_of: snippetOf, cache_miss: miss } = request;
  const repaired = Object.values(repairs ?? {}).reduce((sum, count) => sum + count, 0);
  const numbers = numbersOf(request).join(" · ");
  return (
    <>
      <span class="row-snippet">
        {isInThread && <span class="chip">turn {turn}</span>}
        {snippetOf === "tool" && <span class="chip">tool result</span>} {snippet ?? error ?? ""}
      </span>
      <span class={`row-outcome ${outcome}`}>
        {outcome === "open" ? "open" : `${outcome}${statusOf(outcome, status)}`}
      </span>
      <span class="row-more">
        <span class="row-title">{model ?? `${method} ${path}`}</span>
        {calls === undefined ? "" : ` · calls ${calls.join(", ")}`} · {clock(at)}
        {model === undefined ? "" : ` · ${path.replace(/^\/v1\//, "")}`}
        {outcome === "open" ? "" : ` · ${timeInWords(ms)}`}
      </span>
      <span class="row-marks">
        {miss && miss.cause !== "nothing-known" && (
          <span class="chip warning" title={miss.says}>
            cache missed
          </span>
        )}
        {found && found.errors > 0 && <span class="chip error">{countInWords(found.errors, "error")}</span>}
        {found && found.errors === 0 && found.warnings > 0 && (
          <span class="chip warning">{countInWords(found.warnings, "warning")}</span>
        )}
        {repaired > 0 && (
          <span class="chip">
            {repaired} {repaired === 1 ? "repair" : "repairs"}
          </span>
        )}
      </span>
      <span class="row-more row-numbers" title={numbers}>
        {numbers}
      </span>
    </>
  );
}

/** The numbers of a request. The cause of a missed cache replaces the rate and the first token, which the request's own view shows, too. */
function numbersOf(request: RequestSummary): string[] {
  const { prompt_tokens: prompt, cached_tokens: cached, completion_tokens: completion, cache_miss: miss } = request;
  const { tokens_per_second: rate, first_ms: firstMs } = request;
  const share = cached === undefined || !prompt ? "" : `, ${Math.round((cached / prompt) * 100)} % cached`;
  const isMissed = miss !== undefined && miss.cause !== "nothing-known";
  return [
    ...(prompt === undefined ? [] : [`${prompt.toLocaleString("en")} tokens in${share}`]),
    ...(isMissed ? [miss.says] : []),
    ...(completion === undefined ? [] : [`${completion.toLocaleString("en")} out`]),
    ...(rate === undefined || isMissed ? [] : [`${Math.round(rate)} tokens/s`]),
    ...(firstMs === undefined || isMissed ? [] : [`first token after ${timeInWords(firstMs)}`]),
  ];
}

function statusOf(outcome: string, status: number | undefined): string {
  return outcome === "finished" || status === undefined ? "" : ` ${status}`;
}

/** The time of day. */
function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}
