import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import type { Found } from "./findings.ts";
import { hasMissedCache, isFailure } from "./threads.ts";

/** Selects the requests that are listed; "" selects all. Its members are parameters of the page's address. */
export interface RequestFilter {
  /** The words that are searched for. */
  readonly q: string;
  /** As `modelOf` returns it. */
  readonly model: string;
  readonly api: string;
  readonly key: string;
  /** An outcome, or `error`: failed or refused. */
  readonly outcome: string;
  readonly status: string;
  /** `any`: some rule is broken; `rule ID`; `repair` or `repair KIND`. */
  readonly finding: string;
  readonly cache: "" | "missed";
  /** The number of seconds in which the request came. */
  readonly within: string;
  /** The least duration, in milliseconds. */
  readonly slow: string;
}

export const everything: RequestFilter = {
  q: "",
  model: "",
  api: "",
  key: "",
  outcome: "",
  status: "",
  finding: "",
  cache: "",
  within: "",
  slow: "",
};

const names = Object.keys(everything) as (keyof RequestFilter)[];

/** Whether some requests are not listed. */
export function isNarrowed(filter: RequestFilter): boolean {
  return names.some((name) => filter[name] !== "");
}

/** Whether the filter selects by broken rules, which are found one request after the other. */
export function needsFindings({ finding }: RequestFilter): boolean {
  return finding === "any" || finding.startsWith("rule ");
}

/** The filter in the query of an address. Parameters that are not known are ignored. */
export function filterIn(query: string): RequestFilter {
  const given = new URLSearchParams(query);
  const values = Object.fromEntries(names.map((name) => [name, given.get(name) ?? ""])) as unknown as RequestFilter;
  return { ...values, cache: values.cache === "missed" ? "missed" : "" };
}

/** The query of the address that has this filter; "" if all requests are listed. */
export function queryOf(filter: RequestFilter): string {
  return new URLSearchParams(
    names.filter((name) => filter[name] !== "").map((name) => [name, filter[name]]),
  ).toString();
}

/** The model of a request: the same for all names that clients use for it. */
export function modelOf({ model, engine, engine_model: engineModel }: RequestSummary): string | undefined {
  return engineModel === undefined ? model : `${engineModel} of ${engine ?? ""}`;
}

/** The models of requests by `modelOf`, with names for people: the engine is named where several have a model of the same name. */
export function namedModels(requests: readonly RequestSummary[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const uses = new Map<string, Set<string>>();
  for (const request of requests) {
    const id = modelOf(request);
    if (id === undefined || names.has(id)) continue;
    const name = request.engine_model ?? id;
    names.set(id, name);
    uses.set(name, (uses.get(name) ?? new Set()).add(id));
  }
  const shown = [...names].map(([id, name]): [string, string] => [id, (uses.get(name)?.size ?? 0) > 1 ? id : name]);
  return new Map(shown.toSorted(([, a], [, b]) => (a < b ? -1 : 1)));
}

/** Whether a request is listed, apart from the search. `now`: the Unix time, in milliseconds. */
export function matches(
  request: RequestSummary,
  found: Found | undefined,
  filter: RequestFilter,
  now: number = Date.now(),
): boolean {
  const { model, api, key, outcome, status, cache, within, slow } = filter;
  return (
    (model === "" || modelOf(request) === model) &&
    (api === "" || request.api === api) &&
    (key === "" || request.key === key) &&
    (outcome === "" || (outcome === "error" ? isFailure(request) : request.outcome === outcome)) &&
    (status === "" || String(request.status) === status) &&
    (cache === "" || hasMissedCache(request)) &&
    (within === "" || request.at >= now - Number(within) * 1000) &&
    (slow === "" || request.ms >= Number(slow)) &&
    hasFinding(request, found, filter.finding)
  );
}

function hasFinding({ repairs }: RequestSummary, found: Found | undefined, finding: string): boolean {
  if (finding === "") return true;
  if (finding === "any") return (found?.rules.length ?? 0) > 0;
  const [kind, id] = finding.split(" ");
  if (kind === "rule") return found?.rules.includes(id ?? "") === true;
  return id === undefined ? repairs !== undefined : repairs?.[id] !== undefined;
}
