import { type ComponentType, h, type TargetedMouseEvent, type VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { baseUrl } from "../api/call-api.ts";
import { useChanges } from "../parts/changing.ts";
import { Field } from "../parts/field.tsx";
import { Lazy } from "../parts/lazy.tsx";
import { CheckedServer } from "./checked-server.ts";
import { ProbeTable, signs } from "./probe-table.tsx";
import { JudgeField } from "../captured/judge-field.tsx";
import { AdminKeyField, ServerProfiles } from "./server-profiles.tsx";
import { htmlReport, reportTree } from "../../judge/check/report/report-tree.ts";
import type { HtmlTree } from "../../judge/check/report/report-tree.ts";
import { jsonReport } from "../../judge/check/report/text-reports.ts";
import type { Report } from "../../judge/check/report/report.ts";
import { saveFile } from "../parts/save-file.ts";

const loadBetween = async (): Promise<ComponentType<object>> => (await import("./between-view.tsx")).default;

const apis = ["chat", "completions", "responses", "messages", "embeddings", "models"];

/** The page's server, which has no browser limits, sends the probes and reports the result of each. */
export function CheckView(): VNode {
  const [first] = useState(() => new CheckedServer(1, baseUrl.href.replace(/\/$/, "")));
  const [second] = useState(() => new CheckedServer(2, ""));
  const [sideBySide, setSideBySide] = useState(false);
  const [only, setOnly] = useState("");
  const [profile, setProfile] = useState("");
  const [between, setBetween] = useState(false);
  const progress = useRef<HTMLDivElement>(null);
  useChanges(first);
  useChanges(second);
  const servers = sideBySide ? [first, second] : [first];
  const running = servers.some(({ state }) => state === "running");
  const submit = (event: Event): void => {
    event.preventDefault();
    for (const server of servers) {
      if (running) server.stop();
      else void server.check({ only, profile });
    }
    if (!running) progress.current?.scrollIntoView({ block: "center" });
  };
  const [one, other] = servers.map(({ report }) => report);
  return (
    <div class="checking">
      <div class="column">
        <form class="drop stack" onSubmit={submit}>
          <h2>Check a server</h2>
          <p class="note">
            Does it speak the API as clients expect? Some hundred short requests show it, as <code>truewire check</code>{" "}
            sends them: two at a time, and paid for where the server counts tokens.
          </p>
          <div class="side-by-side">
            {servers.map((server) => (
              <ServerFields key={server.id} server={server} title={sideBySide ? `Server ${server.id}` : "Server"} />
            ))}
          </div>
          <div class="side-by-side">
            <Field label="What is asked">
              {(ids) => (
                <select {...ids} value={only} onChange={({ currentTarget }) => setOnly(currentTarget.value)}>
                  <option value="">all APIs that it has</option>
                  {apis.map((api) => (
                    <option key={api} value={api}>
                      {api} only
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Field label="Form of the answers">
              {(ids) => (
                <select {...ids} value={profile} onChange={({ currentTarget }) => setProfile(currentTarget.value)}>
                  <option value="">any legal one</option>
                  <option value="lean">lean</option>
                  <option value="exact">exact</option>
                </select>
              )}
            </Field>
          </div>
          {servers.some(({ adminKeyNeeded }) => adminKeyNeeded) && <AdminKeyField />}
          <div class="row">
            <button type="button" disabled={running} onClick={() => setSideBySide(!sideBySide)}>
              {sideBySide ? "Remove the second server" : "Add a second server"}
            </button>
            <span class="hint" />
            <button type="submit" class="main">
              {running ? "Stop" : "Check"}
            </button>
          </div>
        </form>
        <div class="side-by-side" ref={progress}>
          {servers.map((server) => (
            <Progress key={server.id} server={server} />
          ))}
        </div>
        {one && other && <RuleDifferences reports={[one, other]} />}
        <ProbeTable servers={servers} />
        <div class="side-by-side">
          {servers.map(({ id, report }) => report && <ReportView key={id} report={report} name={`report-${id}`} />)}
        </div>
        <details class="drop" onToggle={({ currentTarget }) => setBetween((before) => before || currentTarget.open)}>
          <summary>
            <h2>What does a gateway lose?</h2>
          </summary>
          {between && <Lazy load={loadBetween} properties={{}} />}
        </details>
        <JudgeField />
        <ServerProfiles />
      </div>
    </div>
  );
}

/** How far the check of a server is, or why it is not. */
function Progress({ server }: { readonly server: CheckedServer }): VNode | null {
  const { state, url, problem, done, all, about } = server;
  if (state === "failed") return <p class="banner wrong">{problem}</p>;
  if (state === "stopped") return <p class="banner">Stopped before the end: {url}</p>;
  if (state !== "running") return null;
  return (
    <div class="stack">
      <progress max={all || 1} value={done} aria-label={`Check of ${url}`} />
      <p class="note">{all === 0 ? `Asking ${url}…` : `${done} of ${all}: ${about}`}</p>
    </div>
  );
}

/** The report of a check, as `truewire check --format html` writes it. `name`: unlike that of any other report on the page. */
export function ReportView({ report, name }: { readonly report: Report; readonly name: string }): VNode {
  const shown = useMemo(() => reportTree(report, name).map(nodeOf), [report, name]);
  // The address names the view of the page: a link within the report must not change it.
  const follow = (event: TargetedMouseEvent<HTMLElement>): void => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    const target = link && document.getElementById(link.getAttribute("href")?.slice(1) ?? "");
    if (!target) return;
    event.preventDefault();
    target.setAttribute("open", "");
    target.scrollIntoView({ block: "start" });
    target.querySelector("summary")?.focus({ preventScroll: true });
  };
  const host = URL.canParse(report.subject) ? new URL(report.subject).host.replace(":", "-") : "server";
  return (
    <section class="report" aria-label={`Report on ${report.subject}`} onClick={follow}>
      <div class="row end">
        <button type="button" onClick={() => saveFile(`check-${host}.html`, "text/html", htmlReport(report))}>
          Save as HTML
        </button>
        <button type="button" onClick={() => saveFile(`check-${host}.json`, "application/json", jsonReport(report))}>
          Save as JSON
        </button>
      </div>
      {shown}
    </section>
  );
}

function nodeOf(tree: HtmlTree): VNode | string {
  return typeof tree === "string" ? tree : h(tree.tag, tree.attributes, ...tree.children.map(nodeOf));
}

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

interface Properties {
  readonly server: CheckedServer;
  readonly title: string;
}

/** Where a server is, and how it lets one in. */
export function ServerFields({ server, title }: Properties): VNode {
  useChanges(server);
  return (
    <fieldset class="tool stack">
      <legend>{title}</legend>
      <Field label="Base URL">
        {(ids) => (
          <input
            {...ids}
            type="url"
            required
            placeholder="http://127.0.0.1:11434/v1"
            value={server.url}
            onInput={({ currentTarget }) => server.set({ url: currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Key for it" note="If it needs one. It is sent to this server alone, and kept nowhere.">
        {(ids) => (
          <input
            {...ids}
            type="password"
            autocomplete="off"
            value={server.key}
            onInput={({ currentTarget }) => server.set({ key: currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Model to ask">
        {(ids) => (
          <input
            {...ids}
            type="text"
            placeholder="the first that it lists"
            value={server.model}
            onInput={({ currentTarget }) => server.set({ model: currentTarget.value })}
          />
        )}
      </Field>
    </fieldset>
  );
}
