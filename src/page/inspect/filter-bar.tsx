import type { VNode } from "preact";
import { inspectedOutcomes } from "../../inspect/inspected-request.ts";
import type { RequestSummary } from "../../inspect/inspected-request.ts";
import type { RequestFilter } from "./request-filter.ts";

interface Properties {
  readonly requests: readonly RequestSummary[];
  /** Ids of the rules that were found broken. */
  readonly rules: readonly string[];
  readonly filter: RequestFilter;
  readonly onChange: (filter: RequestFilter) => void;
}

/** Which requests are listed: by model, by how they ended, by what was found. */
export function FilterBar({ requests, rules, filter, onChange }: Properties): VNode {
  const models = [...new Set(requests.flatMap(({ model }) => model ?? []))].toSorted();
  const repairs = [...new Set(requests.flatMap(({ repairs }) => Object.keys(repairs ?? {})))].toSorted();
  return (
    <div class="filters" role="group" aria-label="Which requests are listed">
      <select
        aria-label="Model of the requests"
        value={filter.model}
        onChange={({ currentTarget }) => onChange({ ...filter, model: currentTarget.value })}
      >
        <option value="">All models</option>
        {models.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label="How they ended"
        value={filter.outcome}
        onChange={({ currentTarget }) => {
          onChange({ ...filter, outcome: inspectedOutcomes.find((name) => name === currentTarget.value) ?? "" });
        }}
      >
        <option value="">All outcomes</option>
        {inspectedOutcomes.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label="What was found"
        value={filter.finding}
        onChange={({ currentTarget }) => onChange({ ...filter, finding: currentTarget.value })}
      >
        <option value="">Any finding</option>
        <option value="any">A rule is broken</option>
        {rules.length > 0 && (
          <optgroup label="Broken rules">
            {rules.map((id) => (
              <option key={id} value={`rule ${id}`}>
                {id}
              </option>
            ))}
          </optgroup>
        )}
        {repairs.length > 0 && (
          <optgroup label="Repairs of the upstream's answer">
            {repairs.map((id) => (
              <option key={id} value={`repair ${id}`}>
                {id}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </div>
  );
}
