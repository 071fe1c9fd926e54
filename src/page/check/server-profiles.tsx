import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { profileEntries } from "../../wire/apis/adapt/server-profile.ts";
import type { ServerProfileReport } from "../../wire/core/engine.ts";
import { adminKey, AdminRefusal, askAdmin } from "../api/call-api.ts";
import { announcement } from "../parts/changing.ts";
import { Field } from "../parts/field.tsx";
import { Lessons } from "./lessons.tsx";

/** The members of `GET /admin/models` that are shown. */
interface ListedProfiles {
  readonly models: readonly { readonly profiles?: readonly ServerProfileReport[] }[];
}

/** What the upstreams of the page's server accept, for the models that have answered. It is loaded when it is opened. */
export function ServerProfiles(): VNode {
  const [reports, setReports] = useState<readonly ServerProfileReport[]>();
  const [problem, setProblem] = useState("");
  const [keyNeeded, setKeyNeeded] = useState(false);
  const load = async (): Promise<void> => {
    try {
      const { models } = (await (await askAdmin("models", {})).json()) as ListedProfiles;
      const found = models.flatMap(({ profiles = [] }) => profiles);
      setReports(found);
      setProblem("");
      setKeyNeeded(false);
      announcement.say(`Profiles: ${found.length}.`);
    } catch (error) {
      setProblem(
        error instanceof AdminRefusal ? error.message : "The server that this page is from cannot be reached.",
      );
      setKeyNeeded(error instanceof AdminRefusal && error.status === 401);
    }
  };
  return (
    <details class="stack profiles" onToggle={({ currentTarget }) => currentTarget.open && void load()}>
      <summary>What the upstreams of this server accept</summary>
      <div class="stack probes">
        <p class="note">
          Requests are adapted to these profiles. <code>known</code>: from the table of known servers;{" "}
          <code>learned</code>: from refusals; <code>configured</code>: from <code>requests</code> in the configuration,
          which has precedence.
        </p>
        {problem !== "" && <p class="banner wrong">{problem}</p>}
        {keyNeeded && <AdminKeyField />}
        {reports?.length === 0 && problem === "" && (
          <p class="banner">No upstream has answered a request since the server started.</p>
        )}
        {problem === "" &&
          reports?.map((report) => (
            <div class="stack" key={`${report.url} ${report.model}`}>
              <ProfileTable report={report} />
              <Lessons report={report} onForgotten={() => void load()} />
            </div>
          ))}
        <div class="row end">
          <button type="button" onClick={() => void load()}>
            Load again
          </button>
        </div>
      </div>
    </details>
  );
}

/** The entries of a profile. */
export function ProfileTable({ report }: { readonly report: ServerProfileReport }): VNode {
  const { url, model, server } = report;
  const entries = profileEntries(report);
  return (
    <section class="stack" aria-label={`Profile of ${model} at ${url}`}>
      <h2>
        {model} at {url}
      </h2>
      {server !== undefined && <p class="note">{server}</p>}
      {entries.length === 0 ? (
        <p class="note">It accepts everything that an unknown server is expected to accept.</p>
      ) : (
        <div class="rows" tabIndex={0} role="region" aria-label={`Entries of ${model} at ${url}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Entry</th>
                <th scope="col">Value</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
              {entries.map(({ name, value, origin }) => (
                <tr key={`${name} ${origin}`}>
                  <th scope="row">
                    <code>{name}</code>
                  </th>
                  <td>
                    <code>{JSON.stringify(value)}</code>
                  </td>
                  <td>{origin}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** The admin key of the page's server, for a server that asks for one. */
export function AdminKeyField(): VNode {
  return (
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
  );
}
