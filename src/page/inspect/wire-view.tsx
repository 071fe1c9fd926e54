import { repairMarks } from "./marks.ts";
import type { RefObject, VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type {
  InspectedAttempt,
  InspectedRequest,
  ShownRepair,
  TapeContents,
  TimedText,
} from "../../judge/inspect/inspected-request.ts";
import type { Mark } from "../parts/line-painter.ts";
import { Body, Headers } from "./sent-view.tsx";
import { timeInWords } from "./words.ts";
import { Lines } from "../parts/lines.tsx";
import type { LinesHandle, TextPart } from "../parts/lines.tsx";
import { countInWords } from "../parts/count-in-words.ts";

/** The bytes that were sent, with the time of each chunk, next to the bytes of the upstream and the repairs. */
export function WireView({ request }: { readonly request: InspectedRequest }): VNode {
  const { response, asked, ms } = request;
  const [chosen, setChosen] = useState<number>();
  const attempt = asked[chosen ?? asked.length - 1];
  const times = response.body.chunks.map((chunk) => chunk.ms);
  const pause = pauseToShow(response.body.chunks);
  return (
    <div class="stack">
      <div class="timelines">
        {attempt && (
          <Timeline label="From upstream" times={attempt.response.chunks.map((chunk) => chunk.ms)} until={ms} />
        )}
        <Timeline label="To the client" times={times} until={ms} />
        <p class="note ends">
          <span>0</span>
          <span>{timeInWords(ms)}</span>
        </p>
      </div>
      {pause && (
        <p class="note">
          The longest pause: {timeInWords(pause.ms)}, before the chunk at {timeInWords(pause.before)}.
        </p>
      )}
      {asked.length > 1 && (
        <label class="field">
          <span>Attempt</span>
          <select
            value={chosen ?? asked.length - 1}
            onChange={({ currentTarget }) => setChosen(Number(currentTarget.value))}
          >
            {asked.map(({ url, status, ms: at }, index) => (
              <option key={index} value={index}>
                {index + 1}: {url}, {timeInWords(at)}, {status ?? "no answer"}
              </option>
            ))}
          </select>
        </label>
      )}
      <div class={attempt ? "sides" : "sides one"}>
        {attempt && <Upstream key={chosen ?? asked.length - 1} attempt={attempt} />}
        <section class="stack">
          <h3>To the client</h3>
          <Headers title={`Status ${request.status ?? "not sent"}`} headers={response.headers} />
          <Frames label="What went out to the client" tape={response.body} />
        </section>
      </div>
    </div>
  );
}

function Upstream({ attempt }: { readonly attempt: InspectedAttempt }): VNode {
  const {
    url,
    headers,
    body,
    status,
    response_headers: answerHeaders,
    response,
    adaptations,
    repairs,
    error,
  } = attempt;
  const marks = useMemo(() => repairMarks(response, repairs), [response, repairs]);
  const frames = useRef<LinesHandle>(null);
  return (
    <section class="stack">
      <h3>From {url}</h3>
      <Headers title={status === undefined ? "No status" : `Status ${status}`} headers={answerHeaders} />
      {error !== undefined && <p class="banner wrong">{error}</p>}
      {repairs.length > 0 && (
        <ul class="repair-list" aria-label="Repairs">
          {kinds(repairs).map(({ repair, count }) => (
            <li key={repair.id}>
              {repair.at === undefined ? (
                repair.sentence
              ) : (
                <button type="button" class="quiet" onClick={() => frames.current?.show(repair.at ?? 0)}>
                  {repair.sentence}
                </button>
              )}{" "}
              <span class="note">{count} ×</span>
            </li>
          ))}
        </ul>
      )}
      <Frames label="What the other server sent" tape={response} marks={marks} handle={frames} />
      <details>
        <summary>Request sent upstream</summary>
        <div class="stack">
          <Headers title="Headers" headers={headers} />
          {adaptations.length > 0 && (
            <ul class="repair-list" aria-label="Adaptations of the request">
              {adaptations.map(({ id, sentence, place }, at) => (
                <li key={at}>
                  {sentence} <span class="note">{place === undefined ? id : `${id} · ${place}`}</span>
                </li>
              ))}
            </ul>
          )}
          <Body title="The body that was sent" body={body} isIndented />
        </div>
      </details>
    </section>
  );
}

/** Each kind once, where it came first, and how often. */
function kinds(repairs: readonly ShownRepair[]): { readonly repair: ShownRepair; readonly count: number }[] {
  const ids = [...new Set(repairs.map(({ id }) => id))];
  return ids.flatMap((id) => {
    const same = repairs.filter((repair) => repair.id === id);
    const [repair] = same;
    return repair ? [{ repair, count: same.length }] : [];
  });
}

/** Returns the longest pause if it is long enough to be noticed. */
function pauseToShow(chunks: readonly TimedText[]): { readonly ms: number; readonly before: number } | undefined {
  let longest = { ms: 0, before: 0 };
  for (const [at, { ms }] of chunks.entries()) {
    const pause = ms - (chunks[at - 1]?.ms ?? ms);
    if (pause > longest.ms) longest = { ms: pause, before: ms };
  }
  return longest.ms >= 100 ? longest : undefined;
}

interface Properties {
  readonly label: string;
  readonly tape: TapeContents<TimedText>;
  readonly marks?: readonly Mark[];
  readonly handle?: RefObject<LinesHandle | null>;
}

/** Chunks of a text with their times. */
function Frames({ label, tape, marks, handle }: Properties): VNode {
  const parts = useMemo(() => partsOf(tape), [tape]);
  return (
    <Lines class="captured frames" label={label} text={parts} {...(marks && { marks })} {...(handle && { handle })} />
  );
}

function partsOf({ chunks, left_out: leftOut }: TapeContents<TimedText>): TextPart[] {
  const parts = chunks.map(({ ms, text }, at): TextPart => {
    const pause = ms - (chunks[at - 1]?.ms ?? ms);
    return { text, title: `${timeInWords(ms)}${pause >= 1000 ? ` (after ${timeInWords(pause)})` : ""}` };
  });
  if (!leftOut) return parts;
  const title = `… ${countInWords(leftOut.chunks, "chunk")} were not kept in memory …`;
  return parts.toSpliced(leftOut.after, 0, { text: "", title, leftOut: leftOut.characters });
}

interface TimelineProperties {
  /** Times of the chunks, in milliseconds, in order. */
  readonly times: readonly number[];
  /** The end of the line, in milliseconds. */
  readonly until: number;
  readonly label: string;
}

/** Length of the line in units; chunks on the same unit share one stroke. */
const timelineUnits = 1000;

/** Pieces as strokes on a line of time. */
function Timeline({ times, until, label }: TimelineProperties): VNode {
  const places = new Set(times.map((ms) => Math.round((ms / Math.max(until, 1)) * timelineUnits)));
  const strokes = [...places].map((place) => `M${place} 1v14`).join("");
  return (
    <figure class="timeline">
      <figcaption>{label}</figcaption>
      <svg
        viewBox={`0 0 ${timelineUnits} 16`}
        preserveAspectRatio="none"
        role="img"
        aria-label={timesInWords(label, times)}
      >
        <path class="base" d={`M0 8h${timelineUnits}`} />
        <path d={strokes} />
      </svg>
    </figure>
  );
}

function timesInWords(label: string, times: readonly number[]): string {
  const [first] = times;
  const last = times.at(-1);
  if (first === undefined || last === undefined) return `${label}: nothing`;
  return `${label}: ${countInWords(times.length, "chunk")}, from ${timeInWords(first)} to ${timeInWords(last)}`;
}
