import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { baseUrl } from "../api/base-url.ts";
import { adminKey } from "../api/saved-key.ts";
import { useChanges } from "../parts/changing.ts";
import { Field } from "../parts/field.tsx";
import { CheckedServer } from "./checked-server.ts";
import { ProbeTable } from "./probe-table.tsx";
import { ReportView } from "./report-view.tsx";
import { RuleDifferences } from "./rule-differences.tsx";
import { ServerFields } from "./server-fields.tsx";

const apis = ["chat", "completions", "responses", "messages", "embeddings", "models"];

/** The page's server, which has no browser limits, sends the probes and reports the result of each. */
export function CheckView(): VNode {
  const [first] = useState(() => new CheckedServer(1, baseUrl.href.replace(/\/$/, "")));
  const [second] = useState(() => new CheckedServer(2, ""));
  const [sideBySide, setSideBySide] = useState(false);
  const [only, setOnly] = useState("");
  const [profile, setProfile] = useState("");
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
    <div class="judge checking">
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
          {servers.some(({ adminKeyNeeded }) => adminKeyNeeded) && (
            <Field label="Admin key of this page's server" note="Kept for this tab only.">
              {(ids) => (
                <input
                  {...ids}
                  type="password"
                  autocomplete="off"
                  defaultValue={adminKey.value}
                  onInput={({ currentTarget }) => (adminKey.value = currentTarget.value.trim())}
                />
              )}
            </Field>
          )}
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
