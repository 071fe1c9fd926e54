import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { CheckedServer } from "./checked-server.ts";
import type { ShownJudgement } from "../../judge/check/report/report.ts";
import type { Severity } from "../../judge/check/rules/rule.ts";

interface Row {
  readonly id: string;
  readonly about: string;
  /** One a server; undefined: not yet. */
  readonly outcomes: readonly (Outcome | undefined)[];
  readonly differs: boolean;
}

/** Every probe, as it comes, with what it has shown: one column a server. */
export function ProbeTable({ servers }: { readonly servers: readonly CheckedServer[] }): VNode | null {
  const [shown, setShown] = useState<"all" | "findings" | "differences">("all");
  const rows = rowsOf(servers);
  if (rows.length === 0) return null;
  const differences = rows.filter(({ differs }) => differs);
  const findings = rows.filter(({ outcomes }) => outcomes.some((outcome) => outcome && outcome.kind !== "passed"));
  const listed = { all: rows, findings, differences }[shown];
  return (
    <section class="stack probes" aria-label="Probes">
      <div class="row">
        <h2>Probes</h2>
        <span class="hint" />
        <label class="row">
          Show
          <select
            value={shown}
            onChange={({ currentTarget }) => setShown(currentTarget.value as "all" | "findings" | "differences")}
          >
            <option value="all">all ({rows.length})</option>
            <option value="findings">what did not pass ({findings.length})</option>
            {servers.length > 1 && <option value="differences">differences ({differences.length})</option>}
          </select>
        </label>
      </div>
      <div class="rows" tabIndex={0} role="region" aria-label="Table of probes">
        <table>
          <thead>
            <tr>
              <th scope="col">Probe</th>
              {servers.map(({ id, url }) => (
                <th key={id} scope="col">
                  {servers.length === 1 ? "Outcome" : url}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {listed.map((row) => (
              <ProbeRow key={row.id} row={row} servers={servers} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ProbeRow({ row, servers }: { readonly row: Row; readonly servers: readonly CheckedServer[] }): VNode {
  const { id, about, outcomes, differs } = row;
  return (
    <tr class={differs ? "differs" : undefined}>
      <th scope="row">
        {about} <code>{id}</code>
        {differs && <span class="chip">differs</span>}
      </th>
      {outcomes.map((outcome, at) => {
        const others = new Set(outcomes[1 - at]?.rules);
        return (
          <td key={at} class={outcome?.kind.replace(" ", "-")} data-server={servers.length > 1 && servers[at]?.url}>
            {outcome?.words ?? "…"}
            {outcome?.rules.map((rule) => (
              <code key={rule}>{differs && !others.has(rule) ? <strong>{rule}</strong> : rule}</code>
            ))}
          </td>
        );
      })}
    </tr>
  );
}

function rowsOf(servers: readonly CheckedServer[]): Row[] {
  const abouts = new Map(
    servers.flatMap(({ judgements }) => [...judgements.values()].map(({ id, about }) => [id, about])),
  );
  return [...abouts].map(([id, about]) => {
    const outcomes = servers.map(({ judgements }) => {
      const judgement = judgements.get(id);
      return judgement && outcomeOf(judgement);
    });
    return { id, about, outcomes, differs: differ(outcomes[0], outcomes[1]) };
  });
}

/** The result of a probe, as a row of a table. */
interface Outcome {
  readonly kind: Severity | "passed" | "not shown";
  readonly words: string;
  /** The rules that were broken, each once. */
  readonly rules: readonly string[];
}

const severities: readonly Severity[] = ["error", "warning", "note"];

function outcomeOf({ findings, notShown }: ShownJudgement): Outcome {
  const rules = [...new Set(findings.map(({ rule }) => rule))];
  const kind = severities.find((severity) => findings.some((finding) => finding.severity === severity));
  if (kind === undefined)
    return notShown === undefined
      ? { kind: "passed", words: "✓ passed", rules }
      : { kind: "not shown", words: `– not shown: ${notShown}`, rules };
  const worst = new Set(findings.filter(({ severity }) => severity === kind).map(({ rule }) => rule)).size;
  return { kind, words: `${signs[kind]} ${worst} ${kind}${worst === 1 ? "" : "s"}`, rules };
}

/** Names severities, which must not be shown by color only. */
export const signs: Readonly<Record<Severity, string>> = { error: "✗", warning: "!", note: "·" };

/** Whether the same probe has shown one thing with one server and another with the other. */
export function differ(one: Outcome | undefined, other: Outcome | undefined): boolean {
  if (!one || !other) return false;
  return one.kind !== other.kind || one.rules.toSorted().join() !== other.rules.toSorted().join();
}
