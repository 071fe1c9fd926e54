import type { VNode } from "preact";
import { useEffect, useMemo, useState, useRef } from "preact/hooks";
import { useChanges } from "../parts/changing.ts";
import { FilterBar } from "./filter-bar.tsx";
import { Findings } from "./findings.ts";
import { LastRequests } from "./last-requests.ts";
import { everything, matches } from "./request-filter.ts";
import { RequestList } from "./request-list.tsx";
import { RequestView, useTab } from "./request-view.tsx";
import { Field } from "../parts/field.tsx";
import { adminKey } from "../api/call-api.ts";

interface Properties {
  /** True while this view is shown. */
  readonly shown: boolean;
  /** The id of the request that is looked at; "": none. */
  readonly chosen: string;
  readonly onChoose: (id: string) => void;
}

/** The latest requests of all clients, and the details of one. */
export function InspectView({ shown, chosen, onChoose }: Properties): VNode {
  const requests = useMemo(() => new LastRequests(), []);
  const findings = useMemo(() => new Findings(), []);
  const [filter, setFilter] = useState(everything);
  const [tab, setTab] = useTab(chosen);
  const [tries, setTries] = useState(0);
  useChanges(requests);
  useChanges(findings);
  useEffect(() => {
    if (!shown) return;
    const ends = [requests.look(), findings.work()];
    return () => {
      for (const end of ends) end();
    };
  }, [shown, tries]);
  useEffect(() => findings.see(requests.all), [requests.all]);

  const { state, message } = requests;
  if (state === "key-needed" || state === "key-refused")
    return <AdminKeyForm refused={state === "key-refused"} onDone={() => setTries(tries + 1)} />;
  if (state !== "on") {
    return (
      <div class="column">
        <p class="banner">{state === "asking" ? "Asking the server…" : message}</p>
      </div>
    );
  }
  const listed = requests.all.filter((request) => matches(request, findings.of(request.id), filter));
  const summary = requests.find(chosen);
  return (
    <div class={summary ? "inspect one-chosen" : "inspect"}>
      <section class="requests" aria-label="Requests">
        <FilterBar requests={requests.all} rules={findings.rules} filter={filter} onChange={setFilter} />
        <RequestList requests={listed} chosen={chosen} findings={findings} onChoose={onChoose} />
        <p class="note">
          {listed.length === requests.all.length
            ? `${listed.length} requests`
            : `${listed.length} of ${requests.all.length} requests`}
        </p>
      </section>
      <section class="chosen" aria-label="The chosen request">
        {summary ? (
          <>
            <button type="button" class="only-narrow" onClick={() => onChoose("")}>
              Back to the list
            </button>
            <RequestView summary={summary} tab={tab} onTab={setTab} />
          </>
        ) : (
          <p class="banner">
            {requests.all.length === 0
              ? "No requests yet. Ask a model in Play or with any client: each request appears here while it runs."
              : "Choose a request to see its bytes, prompt, events and findings."}
          </p>
        )}
      </section>
    </div>
  );
}

interface AdminKeyProperties {
  /** The key that was entered before is not one of the server's. */
  readonly refused: boolean;
  readonly onDone: () => void;
}

/** Asks for the admin key of a server that has one. */
function AdminKeyForm({ refused, onDone }: AdminKeyProperties): VNode {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="column">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          adminKey.value = input.current?.value.trim() ?? "";
          onDone();
        }}
      >
        <h2>The requests of all clients are for the operator of the server</h2>
        <Field
          label="Admin key"
          note={`${refused ? "The server does not know this key. " : ""}It is kept for this tab only, and forgotten when the tab is closed.`}
        >
          {(ids) => <input {...ids} ref={input} type="password" autocomplete="off" aria-invalid={refused} />}
        </Field>
        <div class="row end">
          <button type="submit" class="main">
            Look at the requests
          </button>
        </div>
      </form>
    </div>
  );
}
