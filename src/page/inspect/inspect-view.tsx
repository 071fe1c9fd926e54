import type { ComponentType, VNode } from "preact";
import { useEffect, useMemo, useState, useRef } from "preact/hooks";
import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { announcement, useChanges } from "../parts/changing.ts";
import { ExportButtons, ExportMenu } from "./export-requests.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { Findings } from "./findings.ts";
import { LastRequests } from "./last-requests.ts";
import { filterIn, isNarrowed, matches, needsFindings, queryOf } from "./request-filter.ts";
import type { RequestFilter } from "./request-filter.ts";
import { RequestList, turnsInWords } from "./request-list.tsx";
import { RequestView, useTab } from "./request-view.tsx";
import { Search } from "./search.ts";
import type { SessionProperties } from "./session-view.tsx";
import { sentenceOfRepair } from "../../wire/apis/tolerant/repairs.ts";
import { constantRepairs, rowsOf, threadMark, threadsOf, totalsOf } from "./threads.ts";
import type { ConstantRepairs as ConstantRepairsOf, ListRow } from "./threads.ts";
import { Field } from "../parts/field.tsx";
import { Lazy } from "../parts/lazy.tsx";
import { adminKey } from "../api/call-api.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** Its script is loaded when a session is chosen first. */
const loadSession = async (): Promise<ComponentType<SessionProperties>> => (await import("./session-view.tsx")).default;

interface Properties {
  /** True while this view is shown. */
  readonly shown: boolean;
  /** The id of the request that is looked at, or of a session after `session:`; "": none. */
  readonly chosen: string;
  /** The filter in the address. */
  readonly query: string;
  readonly onPlace: (chosen: string, query: string) => void;
}

/** The latest requests of all clients, and the details of one. */
export function InspectView({ shown, chosen, query, onPlace }: Properties): VNode {
  const requests = useMemo(() => new LastRequests(), []);
  const findings = useMemo(() => new Findings(), []);
  const search = useMemo(() => new Search(), []);
  const [filter, setFilter] = useState(() => filterIn(query));
  const [tab, setTab] = useTab(chosen);
  const [tries, setTries] = useState(0);
  /** The requests that are listed while the list is paused. */
  const [paused, setPaused] = useState<readonly RequestSummary[]>();
  /** Threads that were opened or closed by hand. */
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  useChanges(requests);
  useChanges(findings);
  useChanges(search);
  useEffect(() => {
    if (!shown) return;
    const ends = [requests.look(), findings.work()];
    return () => {
      for (const end of ends) end();
    };
  }, [shown, tries]);
  useEffect(() => {
    findings.see(requests.all);
    if (requests.state === "on") search.see(requests.all);
    // They were cleared.
    if (requests.all.length === 0) setPaused(undefined);
  }, [requests.all]);
  useEffect(() => search.find(filter.q), [filter.q]);
  useEffect(() => {
    if (!shown || query === queryOf(filter)) return;
    // A link to the view has no filter: the one that was chosen stays.
    if (query === "") onPlace(chosen, queryOf(filter));
    else setFilter(filterIn(query));
  }, [shown, query]);

  const all = paused ?? requests.all;
  const isSearching = search.query !== "";
  const listed = useMemo(() => {
    const now = Date.now();
    return all.filter(
      (request) =>
        (!isSearching || search.results.has(request.id)) && matches(request, findings.of(request.id), filter, now),
    );
  }, [all, filter, needsFindings(filter) && findings.changes, search.changes]);
  const isFiltered = isNarrowed(filter);
  const rows = useMemo(
    () =>
      isSearching
        ? listed.map((request): ListRow => ({ kind: "request", request }))
        : rowsOf(threadsOf(listed), (id) => toggled.has(id) !== isFiltered),
    [listed, toggled, isFiltered, isSearching],
  );
  const constant = useMemo(() => constantRepairs(all), [all]);
  const chosenThread = requests.find(chosen)?.thread;
  useEffect(() => {
    // The address, or a bar of the session's view, may name a request in a thread that is closed.
    if (chosenThread === undefined || isSearching || toggled.has(chosenThread) !== isFiltered) return;
    setToggled(new Set([...toggled].filter((id) => id !== chosenThread).concat(isFiltered ? [] : [chosenThread])));
  }, [chosen, chosenThread]);

  const { state, message } = requests;
  if (state === "key-needed" || state === "key-refused")
    return <AdminKeyForm refusal={state === "key-refused" ? message : ""} onDone={() => setTries(tries + 1)} />;
  if (state !== "on") {
    return (
      <div class="column">
        <p class="banner">{state === "asking" ? "Asking the server…" : message}</p>
      </div>
    );
  }
  const change = (next: RequestFilter): void => {
    setFilter(next);
    onPlace(chosen, queryOf(next));
  };
  const choose = (id: string): void => onPlace(id, queryOf(filter));
  const toggle = (id: string): void => {
    const next = new Set(toggled);
    if (!next.delete(id)) next.add(id);
    setToggled(next);
  };
  const pause = (): void => {
    setPaused(paused ? undefined : requests.all);
    announcement.say(paused ? "The list continues" : "The list is paused");
  };
  const clear = async (): Promise<void> => {
    await requests.clear();
    announcement.say("The list is empty");
  };
  const summary = requests.find(chosen) ?? all.find(({ id }) => id === chosen);
  const threadId = chosen.startsWith(threadMark) ? chosen.slice(threadMark.length) : summary?.thread;
  // The whole session, with the requests that the filter does not list.
  const inThread = threadId === undefined ? [] : all.filter(({ id, thread = id }) => thread === threadId);
  const thread = inThread.length > 1 ? { id: threadId ?? "", requests: inThread } : undefined;
  const isThreadChosen = thread !== undefined && !summary;
  const added = paused ? requests.all.filter(({ number }) => number > (paused[0]?.number ?? 0)).length : 0;
  return (
    <div class={summary || isThreadChosen ? "inspect one-chosen" : "inspect"}>
      <section class="requests" aria-label="Requests">
        <FilterBar shown={shown} requests={all} findings={findings} filter={filter} onChange={change}>
          <>
            <button type="button" class="quiet" aria-pressed={paused !== undefined} onClick={pause}>
              {paused ? `Resume (${added.toLocaleString("en")} new)` : "Pause"}
            </button>
            <button type="button" class="quiet" disabled={all.length === 0} onClick={() => void clear()}>
              Clear requests
            </button>
            <ExportMenu>
              {summary && <ExportButtons subject="request" ids={[summary.id]} />}
              {thread && <ExportButtons subject="session" ids={inThread.map(({ id }) => id)} />}
              <ExportButtons
                subject={isFiltered ? "listed requests" : "all requests"}
                ids={listed.map(({ id }) => id)}
              />
            </ExportMenu>
          </>
        </FilterBar>
        <ConstantRepairs all={constant} />
        <RequestList
          rows={rows}
          chosen={chosen}
          findings={findings}
          constant={constant}
          results={isSearching ? search.results : undefined}
          onChoose={choose}
          onToggle={toggle}
        />
        <p class="note">
          {listed.length === all.length ? "" : `${listed.length.toLocaleString("en")} of `}
          {countInWords(all.length, "request")}
          {search.state === "searching" && <span> · searching…</span>}
          {search.state === "failed" && <span> · {search.message}</span>}
          {search.hasMore && <span> · the search ended at its maximum of results</span>}
        </p>
      </section>
      <section class="chosen" aria-label="The chosen request">
        {(summary || isThreadChosen) && (
          <div class="row">
            <button type="button" class="only-narrow" onClick={() => choose("")}>
              Back to the list
            </button>
            {summary && thread && (
              <button type="button" class="quiet" onClick={() => choose(threadMark + thread.id)}>
                Its session: {turnsInWords(totalsOf(thread))}
              </button>
            )}
          </div>
        )}
        {summary ? (
          <RequestView summary={summary} tab={tab} onTab={setTab} />
        ) : isThreadChosen ? (
          <Lazy key={thread.id} load={loadSession} properties={{ thread, onChoose: choose }} />
        ) : (
          <p class="banner">{emptyText(all.length, listed.length, search.state === "searching")}</p>
        )}
      </section>
    </div>
  );
}

/** The repairs that every answer of a server needs. */
function ConstantRepairs({ all }: { readonly all: ConstantRepairsOf }): VNode | null {
  if (all.size === 0) return null;
  return (
    <ul class="constant-repairs note">
      {[...all].map(([engine, kinds]) => (
        <li key={engine}>
          <details>
            <summary>
              Every answer of {engine} needs {countInWords(kinds.size, "repair")}
            </summary>
            <ul>
              {[...kinds].map((kind) => (
                <li key={kind}>
                  {sentenceOfRepair(kind)} <code>{kind}</code>
                </li>
              ))}
            </ul>
          </details>
        </li>
      ))}
    </ul>
  );
}

function emptyText(all: number, listed: number, isSearching: boolean): string {
  if (all === 0)
    return "No requests yet. Ask a model in Play or with any client: each request appears here while it runs.";
  if (listed === 0 && !isSearching) return "No request matches. Choose “Clear filters” to list all.";
  return "Choose a request to see its bytes, prompt, events and findings, or a session to see its times.";
}

interface AdminKeyProperties {
  /** What the server says of the key that was entered before; "": nothing. */
  readonly refusal: string;
  readonly onDone: () => void;
}

/** Asks for the admin key of a server that has one. */
function AdminKeyForm({ refusal, onDone }: AdminKeyProperties): VNode {
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
          note={`${refusal === "" ? "" : `${refusal} `}It is kept for this tab only, and forgotten when the tab is closed.`}
        >
          {(ids) => <input {...ids} ref={input} type="password" autocomplete="off" aria-invalid={refusal !== ""} />}
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
