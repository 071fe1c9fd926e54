import type { InspectedOutcome, RequestSummary } from "../../inspect/inspected-request.ts";
import type { Found } from "./findings.ts";

/** Selects the requests that are listed; "" selects all. */
export interface RequestFilter {
  readonly model: string;
  readonly outcome: InspectedOutcome | "";
  /** `any`: some rule is broken; `rule ID`; `repair KIND`. */
  readonly finding: string;
}

export const everything: RequestFilter = { model: "", outcome: "", finding: "" };

export function matches(request: RequestSummary, found: Found | undefined, filter: RequestFilter): boolean {
  const { model, outcome, finding } = filter;
  if (model !== "" && request.model !== model) return false;
  if (outcome !== "" && request.outcome !== outcome) return false;
  if (finding === "") return true;
  if (finding === "any") return (found?.rules.length ?? 0) > 0;
  const [kind, id = ""] = finding.split(" ");
  return kind === "rule" ? found?.rules.includes(id) === true : request.repairs?.[id] !== undefined;
}
