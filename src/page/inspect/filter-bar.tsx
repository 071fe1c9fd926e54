import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { inspectedOutcomes } from "../../judge/inspect/inspected-request.ts";
import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import type { Findings } from "./findings.ts";
import { everything, isNarrowed, matches, namedModels } from "./request-filter.ts";
import type { RequestFilter } from "./request-filter.ts";
import { timeInWords } from "./words.ts";

interface Properties {
  /** False while another view is shown. */
  readonly shown: boolean;
  readonly requests: readonly RequestSummary[];
  readonly findings: Findings;
  readonly filter: RequestFilter;
  readonly onChange: (filter: RequestFilter) => void;
  /** Further buttons. */
  readonly children: VNode;
}

const brokenRule: Partial<RequestFilter> = { finding: "any" };

/** The most frequent choices, with the number of requests that each has. */
const quickFilters: readonly { readonly title: string; readonly chosen: Partial<RequestFilter> }[] = [
  { title: "Failed", chosen: { outcome: "error" } },
  { title: "Cache missed", chosen: { cache: "missed" } },
  { title: "Repaired", chosen: { finding: "repair" } },
  { title: "Rule broken", chosen: brokenRule },
  { title: "Slow", chosen: { slow: "5000" } },
];

const times: readonly Option[] = [
  ["60", "Last minute"],
  ["300", "Last 5 minutes"],
  ["900", "Last 15 minutes"],
  ["3600", "Last hour"],
];
const durations: readonly Option[] = [1000, 5000, 10_000, 30_000, 60_000].map((ms) => [
  String(ms),
  `At least ${ms / 1000} s`,
]);

type Option = readonly [value: string, title: string];

/** Which requests are listed: by words in their texts, by how they ended, by what was found. */
export function FilterBar({ shown, requests, findings, filter, onChange, children }: Properties): VNode {
  const search = useRef<HTMLInputElement>(null);
  const [showsMore, setShowsMore] = useState(false);
  // With the frame that shows the list: an effect after it would lose a key that is pressed immediately.
  useLayoutEffect(() => {
    if (!shown) return;
    const focus = (event: KeyboardEvent): void => {
      const isWriting =
        event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable], dialog");
      if (event.key !== "/" || isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      search.current?.focus();
      search.current?.select();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, [shown]);

  // A list of thousands changes ten times per second, and its findings more often.
  const { models, repairs, values } = useMemo(() => optionsOf(requests), [requests]);
  const counts = useMemo(() => quickFilters.map(({ chosen }) => countOf(requests, findings, chosen)), [requests]);
  const broken = useMemo(() => countOf(requests, findings, brokenRule), [requests, findings.changes]);
  const select = (name: keyof RequestFilter, label: string, all: string, options: readonly Option[]): VNode => (
    <Select
      label={label}
      all={all}
      options={options}
      value={filter[name]}
      onChange={(value) => onChange({ ...filter, [name]: value })}
    />
  );
  const used = [filter.api, filter.key, filter.status, filter.within, filter.slow].filter(
    (value) => value !== "",
  ).length;
  return (
    <div class="filters" role="group" aria-label="Which requests are listed">
      <input
        ref={search}
        type="search"
        aria-label="Search requests"
        aria-keyshortcuts="/"
        placeholder="Search bodies, prompts and answers (/)"
        maxLength={200}
        value={filter.q}
        onInput={({ currentTarget }) => onChange({ ...filter, q: currentTarget.value })}
      />
      <div class="row">
        {quickFilters.map(({ title, chosen }, index) => {
          const isChosen = Object.entries(chosen).every(
            ([name, value]) => filter[name as keyof RequestFilter] === value,
          );
          const none = Object.fromEntries(Object.keys(chosen).map((name) => [name, ""]));
          const count = chosen === brokenRule ? broken : (counts[index] ?? 0);
          return (
            <button
              key={title}
              type="button"
              class="quick"
              aria-pressed={isChosen}
              title={chosen.slow === undefined ? undefined : `At least ${timeInWords(Number(chosen.slow))}`}
              onClick={() => onChange({ ...filter, ...(isChosen ? none : chosen) })}
            >
              {title} <span class="count">{count.toLocaleString("en")}</span>
            </button>
          );
        })}
      </div>
      <div class="selects">
        {select("model", "Model of the requests", "All models", models)}
        {select("outcome", "How they ended", "All outcomes", [
          ...inspectedOutcomes.map((name): Option => [name, name]),
          ["error", "failed or refused"],
        ])}
        <Select
          label="What was found"
          all="Any finding"
          value={filter.finding}
          options={[
            ["any", "A rule is broken"],
            ["repair", "The answer was repaired"],
          ]}
          groups={[
            ["Broken rules", findings.rules.map((id) => [`rule ${id}`, id])],
            ["Repairs of the upstream's answer", repairs.map((id) => [`repair ${id}`, id])],
          ]}
          onChange={(finding) => onChange({ ...filter, finding })}
        />
      </div>
      {showsMore && (
        <div class="selects">
          {select("api", "API of the requests", "All APIs", values.api)}
          {select("key", "Key of the client", "All keys", values.key)}
          {select("status", "Status of the answers", "All statuses", values.status)}
          {select("within", "When they came", "Any time", times)}
          {select("slow", "How long they took", "Any duration", durations)}
        </div>
      )}
      <div class="row">
        <button type="button" class="quiet" aria-expanded={showsMore} onClick={() => setShowsMore(!showsMore)}>
          {showsMore ? "Fewer filters" : `More filters${used > 0 ? ` (${used} used)` : ""}`}
        </button>
        {children}
        {isNarrowed(filter) && (
          <button type="button" class="quiet" onClick={() => onChange(everything)}>
            Clear filters
          </button>
        )}
      </div>
    </div>
  );
}

interface FilterOptions {
  readonly models: readonly Option[];
  /** Kinds of repairs. */
  readonly repairs: readonly string[];
  readonly values: Readonly<Record<"api" | "key" | "status", readonly Option[]>>;
}

/** What the listed requests can be chosen by. */
function optionsOf(requests: readonly RequestSummary[]): FilterOptions {
  const values = (of: (request: RequestSummary) => string | number | undefined): Option[] =>
    [...new Set(requests.map(of))]
      .filter((value) => value !== undefined)
      .map(String)
      .toSorted()
      .map((value) => [value, value]);
  return {
    models: [...namedModels(requests)],
    repairs: [...new Set(requests.flatMap(({ repairs }) => Object.keys(repairs ?? {})))].toSorted(),
    values: { api: values(({ api }) => api), key: values(({ key }) => key), status: values(({ status }) => status) },
  };
}

function countOf(requests: readonly RequestSummary[], findings: Findings, chosen: Partial<RequestFilter>): number {
  const filter = { ...everything, ...chosen };
  return requests.filter((request) => matches(request, findings.of(request.id), filter)).length;
}

interface SelectProperties {
  readonly label: string;
  /** The option that selects all. */
  readonly all: string;
  readonly options: readonly Option[];
  readonly groups?: readonly (readonly [title: string, options: readonly Option[]])[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Select({ label, all, options, groups = [], value, onChange }: SelectProperties): VNode {
  const known = [...options, ...groups.flatMap(([, others]) => others)].some(([one]) => one === value);
  return (
    <select aria-label={label} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      <option value="">{all}</option>
      {/* The address may name a value that no request has any more. */}
      {value !== "" && !known && <option value={value}>{value}</option>}
      {options.map(optionOf)}
      {groups
        .filter(([, others]) => others.length > 0)
        .map(([title, others]) => (
          <optgroup key={title} label={title}>
            {others.map(optionOf)}
          </optgroup>
        ))}
    </select>
  );
}

function optionOf([value, title]: Option): VNode {
  return (
    <option key={value} value={value}>
      {title}
    </option>
  );
}
