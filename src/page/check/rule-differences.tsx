import type { VNode } from "preact";
import type { Report } from "../../check/report/report.ts";
import { signs } from "./outcome.ts";

/** The rules that one of two servers breaks and the other does not. */
export function RuleDifferences({ reports }: { readonly reports: readonly [Report, Report] }): VNode {
  const [one, other] = reports;
  const statuses = new Map(other.rules.map(({ id, status }) => [id, status]));
  const rules = one.rules.flatMap(({ id, severity, says, status }) => {
    const there = statuses.get(id);
    const differs = status !== there && (status === "broken" || there === "broken");
    return differs ? [{ id, severity, says, found: [status, there ?? "not shown"] }] : [];
  });
  if (rules.length === 0) return <p class="banner">Both break the same rules.</p>;
  return (
    <section class="stack probes" aria-label="Rules on which they differ">
      <h2>Rules on which they differ</h2>
      <div class="rows" tabIndex={0} role="region" aria-label="Table of rules">
        <table>
          <thead>
            <tr>
              <th scope="col">Rule</th>
              {reports.map(({ subject }, at) => (
                <th key={at} scope="col">
                  {subject}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rules.map(({ id, severity, says, found }) => (
              <tr key={id}>
                <th scope="row">
                  {says} <code>{id}</code>
                </th>
                {found.map((status, at) => (
                  <td
                    key={at}
                    class={status === "broken" ? severity : status.replace(" ", "-")}
                    data-server={reports[at]?.subject}
                  >
                    {status === "broken"
                      ? `${signs[severity]} broken (${severity})`
                      : status === "passed"
                        ? "✓ passed"
                        : "– not shown"}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
