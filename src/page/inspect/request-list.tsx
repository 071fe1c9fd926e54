import { Fragment } from "preact";
import type { TargetedKeyboardEvent, VNode } from "preact";
import type { RequestSummary, SearchHit, SearchResult } from "../../judge/inspect/inspected-request.ts";
import type { Findings, Found } from "./findings.ts";
import { hasMissedCache, idOfRow, repairsIn, totalsOf } from "./threads.ts";
import type { ConstantRepairs, ListRow, RequestThread, ThreadPart } from "./threads.ts";
import { clock, costInWords, timeInWords } from "./words.ts";
import { countInWords } from "../parts/count-in-words.ts";
import { useRowsInSight } from "../parts/rows-in-sight.ts";

interface Properties {
  readonly rows: readonly ListRow[];
  /** The id of the row that is shown; "": none. */
  readonly chosen: string;
  readonly findings: Findings;
  /** What every answer of a server needs is not said again of each. */
  readonly constant: ConstantRepairs;
  /** What was found in the requests, by their ids; undefined: there is no search. */
  readonly results: ReadonlyMap<string, SearchResult> | undefined;
  readonly onChoose: (id: string) => void;
  /** Opens or closes a thread. */
  readonly onToggle: (thread: string) => void;
}

/** Of a row, in CSS pixels; page.css has the same. */
const rowHeight = 80;
/**
 * A list of thousands: only rows in sight are rendered. A row is chosen with the pointer or the arrow keys; the arrows to the right and the
 * left open and close a thread.
 */
export function RequestList({ rows, chosen, findings, constant, results, onChoose, onToggle }: Properties): VNode {
  const at = rows.findIndex((row) => idOfRow(row) === chosen);
  const { box, onScroll, places, reveal, placeAfter } = useRowsInSight(rows.length, rowHeight, at);
  const chooseAt = (place: number): void => {
    const row = rows[place];
    if (row) onChoose(idOfRow(row));
    reveal(place);
  };
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const to = placeAfter(event.key);
    const row = rows[at];
    if (to !== undefined) chooseAt(to);
    else if (event.key === "ArrowRight" && row?.kind === "thread")
      if (row.isOpen) chooseAt(at + 1);
      else onToggle(row.thread.id);
    else if (event.key === "ArrowLeft" && row?.kind === "thread" && row.isOpen) onToggle(row.thread.id);
    else if (event.key === "ArrowLeft" && row?.kind === "request" && row.part)
      chooseAt(rows.findLastIndex((one, place) => place < at && one.kind === "thread"));
    else if ((event.key === "Enter" || event.key === " ") && row?.kind === "thread") onToggle(row.thread.id);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      class="request-list"
      role="tree"
      aria-label="Requests, the newest first"
      tabIndex={0}
      aria-activedescendant={at < 0 ? undefined : `row-${chosen}`}
      onScroll={onScroll}
      onKeyDown={move}
    >
      <div class="request-rows" role="presentation" style={{ height: `${rows.length * rowHeight}px` }}>
        {places.map((place) => {
          const row = rows[place];
          if (!row) return null;
          const id = idOfRow(row);
          const isThread = row.kind === "thread";
          const part = isThread ? undefined : row.part;
          return (
            <div
              key={id}
              id={`row-${id}`}
              class={isThread ? "request-row thread-row" : part ? "request-row continued" : "request-row"}
              role="treeitem"
              aria-level={part ? 2 : 1}
              aria-expanded={isThread ? row.isOpen : undefined}
              aria-selected={id === chosen}
              aria-setsize={rows.length}
              aria-posinset={place + 1}
              style={{ transform: `translateY(${place * rowHeight}px)` }}
              onClick={() => {
                if (isThread && (id === chosen || !row.isOpen)) onToggle(row.thread.id);
                onChoose(id);
              }}
            >
              {isThread ? (
                <ThreadRow
                  thread={row.thread}
                  constant={constant}
                  isOpen={row.isOpen}
                  onToggle={() => onToggle(row.thread.id)}
                />
              ) : (
                <RequestRow
                  request={row.request}
                  found={findings.of(row.request.id)}
                  constant={constant}
                  part={part}
                  hit={results?.get(row.request.id)?.hits[0]}
                />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface ThreadRowProperties {
  readonly thread: RequestThread;
  readonly constant: ConstantRepairs;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

/** What happened in a session or a conversation. */
function ThreadRow({ thread, constant, isOpen, onToggle }: ThreadRowProperties): VNode {
  const totals = totalsOf(thread, constant);
  const { client, topic, failures, open, cacheMisses, repairs, start, end } = totals;
  const toggle = (event: Event): void => {
    event.stopPropagation();
    onToggle();
  };
  return (
    <>
      <span class="row-snippet">
        <span class="fold" aria-hidden="true" onClick={toggle}>
          {isOpen ? "▾" : "▸"}
        </span>
        <bdi dir="auto">{topic}</bdi>
      </span>
      <span class={failures > 0 ? "row-outcome failed" : open > 0 ? "row-outcome open" : "row-outcome"}>
        {failures > 0 ? `${failures} failed` : open > 0 ? `${open} open` : ""}
      </span>
      <span class="row-more">
        {client === undefined ? "" : `${client} · `}
        {turnsInWords(totals)} · {clock(start)} · {timeInWords(end - start)}
      </span>
      <span class="row-marks">
        {cacheMisses > 0 && <span class="chip warning">{countInWords(cacheMisses, "cache miss", "cache misses")}</span>}
        {repairs > 0 && <span class="chip">{countInWords(repairs, "repair")}</span>}
      </span>
      <span class="row-more row-numbers">{tokensInWords(totals)}</span>
    </>
  );
}

interface RowProperties {
  readonly request: RequestSummary;
  readonly found?: Found | undefined;
  readonly constant: ConstantRepairs;
  /** What it is in its thread; undefined: the only listed request of it. */
  readonly part?: ThreadPart | undefined;
  /** Where the words that are searched for were found. */
  readonly hit?: SearchHit | undefined;
}

/** What happened in one request. */
function RequestRow({ request, found, constant, part, hit }: RowProperties): VNode {
  const { at, method, path, model, outcome, status, ms, error, snippet, calls } = request;
  const { snippet_of: snippetOf, cache_miss: miss } = request;
  const repaired = repairsIn(request, constant);
  const numbers = numbersOf(request).join(" · ");
  return (
    <>
      <span class="row-snippet">
        {part && <span class="chip">{partInWords(request, part)}</span>}
        {snippetOf === "tool" && <span class="chip">tool result</span>} <bdi dir="auto">{snippet ?? error}</bdi>
        {snippet === undefined && error === undefined && <span class="dim">{absentText(request)}</span>}
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
        {request.brief && <span class="chip">texts not kept</span>}
        {request.cut && <span class="chip">partly kept</span>}
        {hasMissedCache(request) && (
          <span class="chip warning" title={miss?.says}>
            cache missed
          </span>
        )}
        {found && found.errors > 0 && <span class="chip error">{countInWords(found.errors, "error")}</span>}
        {found && found.errors === 0 && found.warnings > 0 && (
          <span class="chip warning">{countInWords(found.warnings, "warning")}</span>
        )}
        {repaired > 0 && <span class="chip">{countInWords(repaired, "repair")}</span>}
      </span>
      {hit ? (
        <span class="row-more row-numbers">
          in the {hit.place}: <MarkedHit hit={hit} />
        </span>
      ) : (
        <span class="row-more row-numbers" title={numbers}>
          {numbers}
        </span>
      )}
    </>
  );
}

/** Why a row has no text of the request. */
function absentText({ brief, cut, method, outcome, api }: RequestSummary): string {
  if (brief) return "Requests came faster than their texts are kept";
  if (cut) return "Too long to be kept completely";
  if (method === "GET" || method === "HEAD") return "A request without a body";
  if (outcome === "open") return "Being received";
  return api === undefined ? "No request to a model" : "Its body has no text, or could not be read";
}

/** Number of characters before the first match that a row shows. */
const shownBefore = 16;

function MarkedHit({ hit: { text, marks } }: { readonly hit: SearchHit }): VNode {
  const from = Math.max(0, (marks[0]?.[0] ?? 0) - shownBefore);
  const ends = [from, ...marks.map(([, end]) => end)];
  return (
    <bdi class="hit" dir="auto">
      {from > 0 && "…"}
      {marks.map(([start, end], index) => (
        <Fragment key={start}>
          {text.slice(ends[index], start)}
          <mark>{text.slice(start, end)}</mark>
        </Fragment>
      ))}
      {text.slice(ends.at(-1))}
    </bdi>
  );
}

/** `turn 3`, `sub-agent, turn 2`, `title`. */
export function partInWords({ turn }: RequestSummary, part: ThreadPart): string {
  if (part === "turn") return `turn ${turn}`;
  return part === "sub-agent" && turn !== undefined ? `sub-agent, turn ${turn}` : part;
}

/** `14 turns, 3 side requests`. */
export function turnsInWords({ turns, sideRequests }: ReturnType<typeof totalsOf>): string {
  const side = sideRequests === 0 ? "" : `, ${countInWords(sideRequests, "side request")}`;
  return `${countInWords(turns, "turn")}${side}`;
}

/** `120,000 tokens in, 93 % cached · 4,201 out`; "" if no source counted tokens. */
export function tokensInWords({ promptTokens, cachedTokens, completionTokens }: ReturnType<typeof totalsOf>): string {
  if (promptTokens === 0 && completionTokens === 0) return "";
  const cached =
    cachedTokens === undefined || promptTokens === 0 ? "" : `, ${share(cachedTokens, promptTokens)} cached`;
  return `${promptTokens.toLocaleString("en")} tokens in${cached} · ${completionTokens.toLocaleString("en")} out`;
}

function share(part: number, whole: number): string {
  return `${Math.round((part / whole) * 100)} %`;
}

/** The numbers of a request. The cause of a missed cache replaces the rate and the first token, which the request's own view shows, too. */
export function numbersOf(request: RequestSummary): string[] {
  const { prompt_tokens: prompt, cached_tokens: cached, completion_tokens: completion, cache_miss: miss } = request;
  const { tokens_per_second: rate, first_ms: firstMs, estimated_prompt_tokens: estimated, cost } = request;
  const ofCache = cached === undefined || !prompt ? "" : `, ${share(cached, prompt)} cached`;
  const isMissed = hasMissedCache(request);
  return [
    ...(prompt === undefined ? [] : [`${prompt.toLocaleString("en")} tokens in${ofCache}`]),
    ...(estimated === undefined ? [] : [`about ${estimated.toLocaleString("en")} tokens in (estimated)`]),
    ...(isMissed && miss ? [miss.says] : []),
    ...(completion === undefined ? [] : [`${completion.toLocaleString("en")} out`]),
    ...(cost === undefined ? [] : [costInWords(cost)]),
    ...(rate === undefined || isMissed ? [] : [`${Math.round(rate)} tokens/s`]),
    ...(firstMs === undefined || isMissed ? [] : [`first token after ${timeInWords(firstMs)}`]),
  ];
}

function statusOf(outcome: string, status: number | undefined): string {
  return outcome === "finished" || status === undefined ? "" : ` ${status}`;
}
