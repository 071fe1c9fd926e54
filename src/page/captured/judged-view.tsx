import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { mistakesOf } from "../../judge/check/report/report.ts";
import type { Evidence, Mistake, Report } from "../../judge/check/report/report.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Lines } from "../parts/lines.tsx";
import type { LinesHandle } from "../parts/lines.tsx";
import type { JudgedCapture } from "./judging.ts";
import { countInWords } from "../parts/count-in-words.ts";

const severities = ["error", "warning", "note"] as const;

/** The number of findings that are shown first; the others are folded. */
const namedFirst = 3;

/** Maximum number of places that are listed for a rule; the capture below marks all of them. */
const placesShown = 3;

/** What the rules say of one capture. */
export function JudgedView({ judged: { capture, report, repaired } }: { readonly judged: JudgedCapture }): VNode {
  const body = useRef<LinesHandle>(null);
  const mistakes = mistakesOf(report);
  const marks = useMemo(() => {
    const broken = mistakes.flatMap((mistake) => [mistake, ...mistake.others]);
    return broken.flatMap(({ id, severity, evidence }) =>
      evidence.map(({ start, end, found }) => ({ start, end, severity, title: `${id}: ${found}` })),
    );
  }, [report]);
  const showPlace = ({ start }: Evidence): void => body.current?.show(start);
  return (
    <article class="judged">
      <h2>{capture.name}</h2>
      <p class="verdict">
        {severities.map((severity) => (
          <span key={severity} class={report.counts[severity] > 0 ? `chip ${severity}` : "chip"}>
            {countInWords(report.counts[severity], severity)}
          </span>
        ))}
        <span class="chip">{report.counts.passed} rules passed</span>
        {report.forms.map((form) => (
          <span key={form} class="chip">
            form: {form}
          </span>
        ))}
      </p>
      <p class="verdict-line">{verdictOf(report, mistakes)}</p>
      <ol class="findings" aria-label={`The findings that matter most in ${capture.name}`}>
        {mistakes.slice(0, namedFirst).map((mistake) => (
          <Finding key={mistake.id} mistake={mistake} onShow={showPlace} />
        ))}
      </ol>
      {mistakes.length > namedFirst && (
        <details class="more-findings">
          <summary>{countInWords(mistakes.length - namedFirst, "more finding")}</summary>
          <ol class="findings" start={namedFirst + 1}>
            {mistakes.slice(namedFirst).map((mistake) => (
              <Finding key={mistake.id} mistake={mistake} onShow={showPlace} />
            ))}
          </ol>
        </details>
      )}
      {repaired && repaired.repairs.length > 0 && (
        <section class="stack repairs" aria-label={`Repairs of ${capture.name}`}>
          <h3>What Truewire repairs in front of such a server</h3>
          <ul>
            {repaired.repairs.map(({ id, sentence, count }) => (
              <li key={id}>
                {sentence} <span class="note">{count} ×</span>
              </li>
            ))}
          </ul>
          <div class="row">
            <CopyButton label="Copy the repaired answer" text={() => repaired.body} />
          </div>
        </section>
      )}
      <h3>The answer as it came</h3>
      <Lines handle={body} label={`The answer ${capture.name}`} text={capture.body} marks={marks} />
    </article>
  );
}

/** One sentence about the answer as a whole. */
function verdictOf({ counts }: Report, mistakes: readonly Mistake[]): string {
  if (mistakes.length === 0) return "The answer breaks no rule.";
  if (counts.error > 0) return `Clients break on this answer: ${countInWords(counts.error, "error")}.`;
  if (counts.warning > 0) return `Some clients break on this answer: ${countInWords(counts.warning, "warning")}.`;
  return "The answer differs from the vendor's, but no client is known to break.";
}

interface FindingProperties {
  readonly mistake: Mistake;
  readonly onShow: (place: Evidence) => void;
}

function Finding({ mistake, onShow }: FindingProperties): VNode {
  const { id, severity, says, breaks, source, evidence, others } = mistake;
  const right = evidence.find((place) => place.right !== undefined)?.right;
  return (
    <li class={`finding ${severity}`}>
      <p>
        <strong>{severity}</strong> {says}
      </p>
      <p class="note">
        <code>{id}</code>
        {breaks.length > 0 && <> breaks {breaks.join("; ")}</>}
      </p>
      {others.length > 0 && (
        <p class="note">
          The same mistake breaks{" "}
          {others.map((other, at) => (
            <>
              {at > 0 && ", "}
              <code title={other.says}>{other.id}</code>
            </>
          ))}
          .
        </p>
      )}
      <p class="note">{source}</p>
      <ul>
        {evidence.slice(0, placesShown).map((place, at) => (
          <li key={at}>
            <button type="button" class="quiet" onClick={() => onShow(place)}>
              {place.found}
            </button>
          </li>
        ))}
        {evidence.length > placesShown && <li class="note">and {evidence.length - placesShown} more</li>}
      </ul>
      {right !== undefined && (
        <details class="right-bytes">
          <summary>The right bytes</summary>
          {right === "" ? (
            <p class="note">Nothing is sent here.</p>
          ) : (
            <pre tabIndex={0} role="group" aria-label={`Right bytes for ${id}`}>
              {right}
            </pre>
          )}
        </details>
      )}
    </li>
  );
}
