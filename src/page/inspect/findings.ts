import { isWhole } from "../../judge/inspect/inspected-request.ts";
import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { AdminRefusal, askAdmin } from "../api/call-api.ts";
import type { Report } from "../../judge/check/report/report.ts";
import type { Capture } from "../captured/capture.ts";
import { judgeAside } from "../captured/judge-aside.ts";
import { droppedCaptures } from "../captured/read-captures.ts";
import { Changing } from "../parts/changing.ts";

/** What the rules found in one answer. */
export interface Found {
  /** Ids of broken rules: errors and warnings. */
  readonly rules: readonly string[];
  readonly errors: number;
  readonly warnings: number;
}

/** The request whose answer is being judged. */
interface Judging {
  request?: RequestSummary;
}

/** The rules judge answers of these APIs. */
const judgedApis: ReadonlySet<string> = new Set(["chat", "completions", "responses", "messages", "embeddings"]);

/** Rules that an answer breaks because its source gave no usage: the answer then has none, or zeros. */
const missingUsageRules: ReadonlySet<string> = new Set(["usage/missing", "body/usage", "responses/usage-counted"]);

/** The report without findings about usage that the source did not give. */
export function withoutMissingUsage(report: Report, { prompt_tokens: prompt }: RequestSummary): Report {
  if (prompt !== undefined) return report;
  const left = report.rules.filter(({ id, status }) => status === "broken" && missingUsageRules.has(id));
  const counts = { ...report.counts };
  for (const { severity, partOf } of left) if (partOf === undefined) counts[severity]--;
  return { ...report, counts, rules: report.rules.filter((rule) => !left.includes(rule)) };
}

/** Judges the answers of finished requests, one after the other, the newest first; the rules run in a worker of the page. */
export class Findings extends Changing {
  /** null: it cannot be judged (it is not there any more, or was not kept whole). */
  readonly #found = new Map<string, Found | null>();
  #requests: readonly RequestSummary[] = [];
  #wake: (() => void) | undefined;

  /** undefined: not judged yet, or none that can be. */
  of(id: string): Found | undefined {
    return this.#found.get(id) ?? undefined;
  }

  /** The ids of all rules that were found broken. */
  get rules(): readonly string[] {
    const rules = [...this.#found.values()].flatMap((found) => found?.rules ?? []);
    return [...new Set(rules)].toSorted();
  }

  /** What there is to judge now. */
  see(requests: readonly RequestSummary[]): void {
    this.#requests = requests;
    this.#wake?.();
  }

  /** Judges until the returned function is called. */
  work(): () => void {
    const leaving = new AbortController();
    leaving.signal.addEventListener("abort", () => this.#wake?.());
    void this.#judge(leaving.signal);
    return () => leaving.abort();
  }

  async #judge(signal: AbortSignal): Promise<void> {
    // Of this work alone: one that was left may still bring a last finding while the next has begun.
    const judging: Judging = {};
    try {
      for await (const judged of judgeAside(this.#captures(signal, judging))) {
        const report = judging.request ? withoutMissingUsage(judged.report, judging.request) : judged.report;
        const broken = report.rules.filter(({ status, severity }) => status === "broken" && severity !== "note");
        this.#keep(judging, {
          rules: broken.map(({ id }) => id),
          errors: report.counts.error,
          warnings: report.counts.warning,
        });
      }
    } catch {
      // A worker that fails on one answer is started again for the next.
      this.#keep(judging, null);
      if (!signal.aborted) void this.#judge(signal);
    }
  }

  #keep({ request }: Judging, found: Found | null): void {
    if (request) this.#found.set(request.id, found);
    this.changed();
  }

  async *#captures(signal: AbortSignal, judging: Judging): AsyncGenerator<Capture> {
    while (!signal.aborted) {
      const next = this.#requests.find(
        (request) =>
          isWhole(request) &&
          request.outcome !== "cancelled" &&
          judgedApis.has(request.api ?? "") &&
          !this.#found.has(request.id),
      );
      if (!next) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      judging.request = next;
      const capture = await captureOf(next.id, signal).catch(() => undefined);
      if (signal.aborted) return;
      if (capture) yield capture;
      else this.#found.set(next.id, null);
    }
  }
}

/** The request and its answer; undefined: it is not over, or was not kept whole. */
export async function captureOf(id: string, signal: AbortSignal): Promise<Capture | undefined> {
  try {
    const response = await askAdmin(`requests/${id}/capture`, { signal });
    return droppedCaptures(id, await response.text())[0];
  } catch (error) {
    if (error instanceof AdminRefusal) return undefined;
    throw error;
  }
}
