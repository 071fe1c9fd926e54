import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Evidence, RuleOutcome } from "../../check/report/report.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import type { JudgedCapture } from "./judging.ts";
import { paintMarked } from "./mark-painter.ts";

const severities = ["error", "warning", "note"] as const;

/** Maximum number of places that are listed for a rule; the capture below marks all of them. */
const placesShown = 3;

/** What the rules say of one capture. */
export function JudgedView({ judged: { capture, report, repaired } }: { readonly judged: JudgedCapture }): VNode {
  const body = useRef<HTMLPreElement>(null);
  const broken = severities.flatMap((severity) =>
    report.rules.filter((rule) => rule.status === "broken" && rule.severity === severity),
  );
  useEffect(() => {
    if (!body.current) return;
    const marks = broken.flatMap(({ id, severity, evidence }) =>
      evidence.map(({ start, end, found }) => ({ start, end, severity, title: `${id}: ${found}` })),
    );
    const controller = new AbortController();
    void paintMarked(body.current, capture.body, marks, controller.signal);
    return () => controller.abort();
  }, [capture]);
  const showPlace = ({ start }: Evidence): void => {
    const marks = [...(body.current?.querySelectorAll("mark") ?? [])];
    const place = marks.findLast((mark) => Number(mark.dataset["start"]) <= start);
    place?.scrollIntoView({ block: "center" });
    body.current?.focus({ preventScroll: true });
  };
  return (
    <article class="judged">
      <h2>{capture.name}</h2>
      <p class="verdict">
        {severities.map((severity) => (
          <span key={severity} class={report.counts[severity] > 0 ? `chip ${severity}` : "chip"}>
            {plural(report.counts[severity], severity)}
          </span>
        ))}
        <span class="chip">{report.counts.passed} rules passed</span>
        {report.forms.map((form) => (
          <span key={form} class="chip">
            form: {form}
          </span>
        ))}
      </p>
      {broken.length === 0 && <p>The rules have nothing against this answer.</p>}
      <ol class="findings">
        {broken.map((rule) => (
          <Finding key={rule.id} rule={rule} onShow={showPlace} />
        ))}
      </ol>
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
      <pre ref={body} class="captured" tabIndex={0} aria-label={`The answer ${capture.name}`} />
    </article>
  );
}

function Finding({ rule, onShow }: { readonly rule: RuleOutcome; readonly onShow: (place: Evidence) => void }): VNode {
  const { id, severity, says, breaks, source, evidence } = rule;
  return (
    <li class={`finding ${severity}`}>
      <p>
        <strong>{severity}</strong> {says}
      </p>
      <p class="note">
        <code>{id}</code>
        {breaks.length > 0 && <> breaks {breaks.join("; ")}</>}
      </p>
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
    </li>
  );
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
