import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { ExportButtons } from "./export-requests.tsx";
import { numbersOf, partInWords, tokensInWords, turnsInWords } from "./request-list.tsx";
import { isFailure, partsOf, totalsOf } from "./threads.ts";
import type { RequestThread } from "./threads.ts";
import { barsOf, timeAxis } from "./waterfall.ts";
import type { PhaseName, RequestBar } from "./waterfall.ts";
import { clock, timeInWords } from "./words.ts";
import { countInWords } from "../parts/count-in-words.ts";

export interface SessionProperties {
  readonly thread: RequestThread;
  readonly onChoose: (id: string) => void;
}

const phaseWords: Readonly<Record<PhaseName, string>> = {
  preparing: "preparing the prompt",
  queue: "queue",
  prefill: "prompt processing",
  "first token": "time to first token",
  generation: "generation",
  whole: "answer as a whole",
  other: "other",
};

/** Interval at which the bars of open requests grow, in milliseconds. */
const againMs = 1000;

/** A session: its sums, and its requests on one time axis. */
export default function SessionView({ thread, onChoose }: SessionProperties): VNode {
  const [now, setNow] = useState(Date.now());
  const totals = totalsOf(thread);
  const { client, topic, failures, open, start, end } = totals;
  useEffect(() => {
    if (open === 0) return;
    const timer = setInterval(() => setNow(Date.now()), againMs);
    return () => clearInterval(timer);
  }, [open > 0]);
  const bars = useMemo(() => barsOf(thread.requests, now), [thread, now]);
  const partOf = partsOf(thread);
  const nameOf = (request: RequestSummary): string => partInWords(request, partOf(request));
  const tokens = tokensInWords(totals);
  return (
    <article class="inspected" aria-label="Session">
      <header class="stack">
        <h2 dir="auto">{topic === "" ? "Session" : topic}</h2>
        <p class="verdict">
          {failures > 0 && <span class="chip error">{failures} failed</span>}
          {open > 0 && <span class="chip">{open} open</span>}
          {client !== undefined && <span class="chip">{client}</span>}
          <span class="chip">{turnsInWords(totals)}</span>
          {tokens !== "" && <span class="chip">{tokens}</span>}
          <span class="chip">
            {clock(start)} to {clock(end)}, {timeInWords(end - start)}
          </span>
        </p>
        <div class="row">
          <ExportButtons subject="session" ids={thread.requests.map(({ id }) => id)} />
        </div>
      </header>
      <Waterfall bars={bars} nameOf={nameOf} onChoose={onChoose} />
      <details>
        <summary>The same as a table</summary>
        <TimeTable bars={bars} nameOf={nameOf} />
      </details>
    </article>
  );
}

interface BarsProperties {
  readonly bars: readonly RequestBar[];
  readonly nameOf: (request: RequestSummary) => string;
}

/** One row for each request. One row is in the tab order, and the arrow keys move between rows. */
function Waterfall({ bars, nameOf, onChoose }: BarsProperties & { readonly onChoose: (id: string) => void }): VNode {
  const [shorten, setShorten] = useState(true);
  const [current, setCurrent] = useState(0);
  const rows = useRef<HTMLOListElement>(null);
  const axis = useMemo(() => timeAxis(bars, shorten), [bars, shorten]);
  const hasLongGaps = useMemo(() => timeAxis(bars, true).shortened.length > 0, [bars]);
  const shown = bars[Math.min(current, bars.length - 1)];
  const names = new Set(bars.flatMap(({ phases }) => phases.map(({ name }) => name)));
  const move = (event: TargetedKeyboardEvent<HTMLOListElement>): void => {
    const last = bars.length - 1;
    const to = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(last, to));
    setCurrent(next);
    const button = rows.current?.children[next]?.firstElementChild;
    if (button instanceof HTMLElement) button.focus();
  };
  return (
    <section class="stack" aria-label="Times of the requests">
      <div class="row phase-names">
        {(Object.keys(phaseWords) as PhaseName[])
          .filter((name) => names.has(name))
          .map((name) => (
            <span key={name} class="phase-name">
              <i class={classOf(name)} /> {phaseWords[name]}
            </span>
          ))}
        {hasLongGaps && (
          <label class="check">
            <input
              type="checkbox"
              checked={shorten}
              onChange={({ currentTarget }) => setShorten(currentTarget.checked)}
            />
            Shorten long gaps
          </label>
        )}
      </div>
      <ol class="waterfall" ref={rows} onKeyDown={move}>
        {bars.map((bar, index) => {
          const { request, phases } = bar;
          let at = bar.start;
          return (
            <li key={request.id}>
              <button
                type="button"
                class={isFailure(request) ? "bar-row failed" : "bar-row"}
                tabIndex={index === Math.min(current, bars.length - 1) ? 0 : -1}
                onFocus={() => setCurrent(index)}
                onMouseEnter={() => setCurrent(index)}
                onClick={() => onChoose(request.id)}
              >
                <span class="bar-name">
                  {nameOf(request)} <bdi class="dim">{request.snippet ?? request.path}</bdi>
                </span>
                <span class="unseen">{barInWords(bar)}</span>
                <span class="bar-track" aria-hidden="true">
                  {axis.shortened.map((gap) => (
                    <i key={gap.start} class="long-gap" style={place(axis.position, gap.start, gap.end)} />
                  ))}
                  {phases.map(({ name, ms }) => {
                    const start = at;
                    at += ms;
                    return <i key={name} class={classOf(name)} style={place(axis.position, start, at)} />;
                  })}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
      {shown && (
        <p class="note bar-numbers">
          <strong>{nameOf(shown.request)}</strong> {barInWords(shown)}
        </p>
      )}
      {names.has("first token") && (
        <p class="note">
          Other servers and programs do not report their queue and the processing of the prompt: both are part of the
          time to first token.
        </p>
      )}
    </section>
  );
}

function classOf(name: PhaseName): string {
  return `phase ${name.replace(" ", "-")}`;
}

function place(position: (ms: number) => number, start: number, end: number): { left: string; width: string } {
  const left = position(start);
  return { left: `${left * 100}%`, width: `max(2px, ${(position(end) - left) * 100}%)` };
}

/** All numbers of a bar. */
function barInWords({ request, start, end, phases, gap }: RequestBar): string {
  const { outcome, status } = request;
  const total =
    outcome === "open" ? "open for" : outcome === "finished" ? "finished in" : `${outcome} ${status ?? ""} after`;
  return [
    `${total} ${timeInWords(end - start)}`,
    `began after ${timeInWords(start)}`,
    ...(gap > 0 ? [`gap before it ${timeInWords(gap)}`] : []),
    ...(phases.length > 1 ? phases.map(({ name, ms }) => `${phaseWords[name]} ${timeInWords(ms)}`) : []),
    ...numbersOf(request),
  ].join(" · ");
}

function TimeTable({ bars, nameOf }: BarsProperties): VNode {
  const used = (["preparing", "queue", "prefill", "first token", "generation", "whole"] as const).filter((one) =>
    bars.some(({ phases }) => phases.some(({ name }) => name === one)),
  );
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Table of the requests">
      <table>
        <thead>
          <tr>
            {[
              "Request",
              "Began",
              "Gap before",
              ...used.map((name) => phaseWords[name]),
              "Duration",
              "Tokens in",
              "Cached",
              "Tokens out",
              "Outcome",
            ].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {bars.map(({ request, start, end, gap, phases }) => (
            <tr key={request.id}>
              <th scope="row">{nameOf(request)}</th>
              <td>{timeInWords(start)}</td>
              <td>{gap > 0 ? timeInWords(gap) : "–"}</td>
              {used.map((one) => {
                const phase = phases.find(({ name }) => name === one);
                return <td key={one}>{phase ? timeInWords(phase.ms) : "–"}</td>;
              })}
              <td>{timeInWords(end - start)}</td>
              <td>{numberOrNone(request.prompt_tokens)}</td>
              <td>{numberOrNone(request.cached_tokens)}</td>
              <td>{numberOrNone(request.completion_tokens)}</td>
              <td>
                {request.outcome} {request.status}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="note">{countInWords(bars.length, "request")}, the oldest first.</p>
    </div>
  );
}

function numberOrNone(count: number | undefined): string {
  return count === undefined ? "–" : count.toLocaleString("en");
}
