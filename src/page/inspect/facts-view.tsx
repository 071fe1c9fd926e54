import type { VNode } from "preact";
import type { RequestSummary } from "../../inspect/inspected-request.ts";
import { countInWords, timeInWords } from "./words.ts";

/** The head of a request: what it was, how it ended, what it cost. */
export function FactsView({ summary, actions }: { readonly summary: RequestSummary; readonly actions: VNode }): VNode {
  const { method, path, model, outcome, status, error } = summary;
  return (
    <header class="stack">
      <div class="row">
        <h2>
          {method} {path}
        </h2>
        {actions}
      </div>
      <p class="verdict">
        <span class={outcome === "failed" || outcome === "refused" ? "chip error" : "chip"}>
          {outcome}
          {status === undefined ? "" : ` · ${status}`}
        </span>
        {model !== undefined && <span class="chip">{model}</span>}
        {factsOf(summary).map((fact) => (
          <span key={fact} class="chip">
            {fact}
          </span>
        ))}
      </p>
      {error !== undefined && <p class="banner wrong">{error}</p>}
    </header>
  );
}

function factsOf(summary: RequestSummary): string[] {
  const { ms, first_ms: firstMs, outcome, stream, key, finish, attempts = 0 } = summary;
  const { prompt_tokens: prompt, cached_tokens: cached, completion_tokens: completion } = summary;
  return [
    ...(key === undefined ? [] : [`key ${key}`]),
    ...(stream === undefined ? [] : [stream ? "stream" : "whole"]),
    ...(firstMs === undefined ? [] : [`first token after ${timeInWords(firstMs)}`]),
    ...(outcome === "open" ? [] : [`over after ${timeInWords(ms)}`]),
    ...(prompt === undefined ? [] : [`${countInWords(prompt, "prompt token")}${ofCache(cached)}`]),
    ...(completion === undefined ? [] : [countInWords(completion, "token")]),
    ...(finish === undefined ? [] : [finish]),
    ...(attempts > 1 ? [countInWords(attempts, "attempt")] : []),
  ];
}

function ofCache(cached: number | undefined): string {
  return cached === undefined ? "" : `, ${cached} of them from the cache`;
}
