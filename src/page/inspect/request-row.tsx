import type { VNode } from "preact";
import type { RequestSummary } from "../../inspect/inspected-request.ts";
import type { Found } from "./findings.ts";
import { countInWords, timeInWords } from "./words.ts";

/** One request in one look. */
export function RequestRow({
  request,
  found,
}: {
  readonly request: RequestSummary;
  readonly found?: Found | undefined;
}): VNode {
  const { at, method, path, model, outcome, status, ms, completion_tokens: tokens, repairs } = request;
  const repaired = Object.values(repairs ?? {}).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <span class="row-title">{model ?? `${method} ${path}`}</span>
      <span class={`row-outcome ${outcome}`}>
        {outcome === "open" ? "open" : `${outcome}${statusOf(outcome, status)}`}
      </span>
      <span class="row-more">
        {clock(at)} · {model === undefined ? "" : `${path.replace(/^\/v1\//, "")} · `}
        {outcome === "open" ? "" : timeInWords(ms)}
        {tokens === undefined || outcome === "open" ? "" : ` · ${countInWords(tokens, "token")}`}
      </span>
      <span class="row-marks">
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
    </>
  );
}

function statusOf(outcome: string, status: number | undefined): string {
  return outcome === "finished" || status === undefined ? "" : ` ${status}`;
}

/** The time of day. */
function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}
