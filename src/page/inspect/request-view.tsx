import type { ComponentType, VNode, TargetedKeyboardEvent } from "preact";
import { useEffect, useMemo, useRef, useState, useId } from "preact/hooks";
import { isWhole } from "../../judge/inspect/inspected-request.ts";
import type { InspectedRequest, RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { AdminRefusal, askAdmin } from "../api/call-api.ts";
import { Lazy } from "../parts/lazy.tsx";
import { RequestActions } from "./request-actions.tsx";
import { Lines } from "../parts/lines.tsx";
import { costInWords, timeInWords } from "./words.ts";
import { judgeAside } from "../captured/judge-aside.ts";
import type { JudgedCapture } from "../captured/judging.ts";
import { JudgedView } from "../captured/judged-view.tsx";
import { captureOf, withoutMissingUsage } from "./findings.ts";
import { countInWords } from "../parts/count-in-words.ts";

const tabs = [
  { name: "overview", title: "Overview" },
  { name: "changes", title: "Changes" },
  { name: "json", title: "JSON" },
  { name: "request", title: "Request" },
  { name: "prompt", title: "Prompt" },
  { name: "wire", title: "Wire" },
  { name: "events", title: "Events" },
  { name: "findings", title: "Findings" },
] as const;

export type TabName = (typeof tabs)[number]["name"];

/** Views whose scripts are loaded when they are shown first. */
const loadOverview = async (): Promise<ComponentType<TabProperties>> => (await import("./overview-view.tsx")).default;
const loadChanges = async (): Promise<ComponentType<TabProperties>> => (await import("./changes-view.tsx")).default;
const loadPrompt = async (): Promise<ComponentType<TabProperties>> => (await import("./prompt-view.tsx")).PromptView;
const loadSent = async (): Promise<ComponentType<TabProperties>> => (await import("./sent-view.tsx")).SentView;
const loadWire = async (): Promise<ComponentType<TabProperties>> => (await import("./wire-view.tsx")).WireView;
const loadJson = async (): Promise<ComponentType<TabProperties>> => (await import("./json-view.tsx")).default;

interface TabProperties {
  readonly request: InspectedRequest;
}

/** The tab of the address, `#inspect/ID/TAB?FILTER`, which follows it and is followed by it. `chosen`: the id of the request; "": none. */
export function useTab(chosen: string): [TabName, (tab: TabName) => void] {
  const [tab, setTab] = useState(() => tabInAddress() ?? "overview");
  useEffect(() => {
    const follow = (): void => setTab((current) => tabInAddress() ?? current);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  // After each rendering: who changes the id or the filter in the address leaves the tab out.
  useEffect(() => {
    const { view, id, query } = placeInAddress();
    if (view !== "inspect" || id !== chosen || !chosen.startsWith("req_") || tabInAddress() === tab) return;
    history.replaceState(null, "", `#inspect/${chosen}/${tab}${query}`);
  });
  return [tab, setTab];
}

function placeInAddress(): Readonly<Record<"view" | "id" | "tab" | "query", string>> {
  const [, path = "", query = ""] = /^#?([^?]*)(.*)$/.exec(location.hash) ?? [];
  const [view = "", id = "", tab = ""] = path.split("/");
  return { view, id, tab, query };
}

function tabInAddress(): TabName | undefined {
  const place = placeInAddress();
  return place.view === "inspect" ? tabs.find(({ name }) => name === place.tab)?.name : undefined;
}

/** Interval at which an open answer is loaded again, in milliseconds. */
const againMs = 1000;

interface Properties {
  readonly summary: RequestSummary;
  readonly tab: TabName;
  readonly onTab: (name: TabName) => void;
}

/** All that is known of one request. */
export function RequestView({ summary, tab, onTab }: Properties): VNode {
  const { id, outcome } = summary;
  const [request, setRequest] = useState<InspectedRequest>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      try {
        const loaded = (await (
          await askAdmin(`requests/${id}`, { signal: leaving.signal })
        ).json()) as InspectedRequest;
        setRequest(loaded);
        setProblem("");
        if (loaded.outcome === "open") timer = setTimeout(() => void ask(), againMs);
      } catch (error) {
        if (leaving.signal.aborted) return;
        setProblem(error instanceof AdminRefusal ? error.message : "The server does not answer.");
      }
    };
    void ask();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [id, outcome]);

  const shown = request?.id === id ? request : undefined;
  return (
    <article class="inspected" aria-label={`Request ${id}`}>
      <FactsView summary={shown ?? summary} actions={<RequestActions request={shown} />} />
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      {shown?.brief && (
        <p class="note">
          Requests arrived faster than their texts are kept, so only the line of this one was kept. The option
          inspectSize sets how much is kept.
        </p>
      )}
      {shown && !shown.brief && (
        <Tabs label="What to see of the request" tabs={tabs} current={tab} onChoose={onTab}>
          <TabContent key={tab} tab={tab} request={shown} />
        </Tabs>
      )}
    </article>
  );
}

function TabContent({ tab, request }: TabProperties & { readonly tab: TabName }): VNode {
  switch (tab) {
    case "overview":
      return <Lazy load={loadOverview} properties={{ request }} />;
    case "changes":
      return <Lazy load={loadChanges} properties={{ request }} />;
    case "json":
      return <Lazy load={loadJson} properties={{ request }} />;
    case "request":
      return <Lazy load={loadSent} properties={{ request }} />;
    case "prompt":
      return <Lazy load={loadPrompt} properties={{ request }} />;
    case "wire":
      return <Lazy load={loadWire} properties={{ request }} />;
    case "events":
      return <EventsView request={request} />;
    case "findings":
      return <FindingsView request={request} />;
  }
}

/** The engine's events, with the time of each batch. */
export function EventsView({ request }: { readonly request: InspectedRequest }): VNode {
  const { chunks, left_out: leftOut } = request.events;
  const text = useMemo(() => {
    const lines = chunks.map(({ ms, events }) =>
      events.map((event) => `${ms.toFixed(1).padStart(9)} ms  ${lineOf(event)}\n`).join(""),
    );
    if (leftOut)
      lines.splice(leftOut.after, 0, `… ${countInWords(leftOut.chunks, "batch")} were not kept in memory …\n`);
    return lines.join("");
  }, [chunks]);
  if (chunks.length === 0) return <p class="note">No engine has sent events.</p>;
  return <Lines class="captured tall" label="Events" text={text} />;
}

function lineOf({ type, ...rest }: { readonly type: string }): string {
  return `${type.padEnd(15)} ${JSON.stringify(rest)}`;
}

/** The head of a request: what it was, how it ended, what it cost. */
export function FactsView({ summary, actions }: { readonly summary: RequestSummary; readonly actions: VNode }): VNode {
  const { method, path, model, outcome, status, error } = summary;
  return (
    <header class="stack">
      <div class="row">
        <h2>
          {method} {path}
        </h2>
        {actions}
      </div>
      <p class="verdict">
        <span class={outcome === "failed" || outcome === "refused" ? "chip error" : "chip"}>
          {outcome}
          {status === undefined ? "" : ` · ${status}`}
        </span>
        {model !== undefined && <span class="chip">{model}</span>}
        {factsOf(summary).map((fact) => (
          <span key={fact} class="chip">
            {fact}
          </span>
        ))}
      </p>
      {error !== undefined && <p class="banner wrong">{error}</p>}
    </header>
  );
}

function factsOf(summary: RequestSummary): string[] {
  const { ms, first_ms: firstMs, outcome, stream, key, finish, attempts = 0, lost = 0, resumes = 0 } = summary;
  const { prompt_tokens: prompt, cached_tokens: cached, completion_tokens: completion, calls } = summary;
  const { tokens_per_second: rate, cost, route } = summary;
  return [
    ...(key === undefined ? [] : [`key ${key}`]),
    ...(route === undefined ? [] : [`routed to ${route.model} by the rule ${route.rule}`]),
    ...(stream === undefined ? [] : [stream ? "stream" : "whole"]),
    ...(firstMs === undefined ? [] : [`first token after ${timeInWords(firstMs)}`]),
    ...(outcome === "open" ? [] : [`${outcome === "finished" ? "finished in" : "ended after"} ${timeInWords(ms)}`]),
    ...(prompt === undefined ? [] : [`${countInWords(prompt, "prompt token")}${ofCache(cached)}`]),
    ...(completion === undefined ? [] : [countInWords(completion, "token")]),
    ...(cost === undefined ? [] : [costInWords(cost)]),
    ...(rate === undefined ? [] : [`${Math.round(rate)} tokens/s`]),
    ...(calls === undefined ? [] : [`calls ${calls.join(", ")}`]),
    ...(finish === undefined ? [] : [finish]),
    ...(attempts > 1 ? [countInWords(attempts, "attempt")] : []),
    ...(lost > 0 ? [`connection lost ${times(lost)}`] : []),
    ...(resumes > 0 ? [`resumed ${times(resumes)}`] : []),
  ];
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

function ofCache(cached: number | undefined): string {
  return cached === undefined ? "" : `, ${cached} of them cached`;
}

/** What the rules of `truewire check` say of the answer; they run in the browser. */
export function FindingsView({ request }: { readonly request: InspectedRequest }): VNode {
  const { id, outcome, api } = request;
  const [judged, setJudged] = useState<JudgedCapture>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (outcome === "open") return;
    if (!isWhole(request))
      return setProblem("The rules cannot run: the request has no answer, or was too long to be kept completely.");
    const leaving = new AbortController();
    const judge = async (): Promise<void> => {
      const capture = await captureOf(id, leaving.signal);
      if (!capture) return setProblem("The rules cannot run: the request was dropped for newer ones.");
      for await (const one of judgeAside([capture])) {
        if (!leaving.signal.aborted) setJudged({ ...one, report: withoutMissingUsage(one.report, request) });
      }
    };
    judge().catch((error: unknown) => {
      if (!leaving.signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
    });
    return () => leaving.abort();
  }, [id, outcome]);
  if (outcome === "open") return <p class="note">The rules run when the answer has ended.</p>;
  if (api === undefined) return <p class="note">The rules apply to answers of models only.</p>;
  if (problem !== "") return <p class="note">{problem}</p>;
  return judged ? <JudgedView judged={judged} /> : <p class="waiting">Judging…</p>;
}

interface TabsProperties<Name extends string> {
  readonly label: string;
  readonly tabs: readonly { readonly name: Name; readonly title: string }[];
  readonly current: Name;
  readonly onChoose: (name: Name) => void;
  readonly children: VNode;
}

/** Tabs with the panel of one of them. Source of the keys: WAI-ARIA Authoring Practices, "Tabs". */
function Tabs<Name extends string>({ label, tabs, current, onChoose, children }: TabsProperties<Name>): VNode {
  const id = useId();
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const at = tabs.findIndex(({ name }) => name === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const tab = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (!tab) return;
    event.preventDefault();
    onChoose(tab.name);
    const element = event.currentTarget.querySelector(`[data-tab="${tab.name}"]`);
    if (element instanceof HTMLElement) element.focus();
  };
  const list = useRef<HTMLDivElement>(null);
  // On a phone, the tabs are wider than the screen.
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [current]);
  return (
    <>
      <div ref={list} class="tab-list" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            class="quiet"
            id={`${id}-${name}`}
            data-tab={name}
            aria-selected={name === current}
            aria-controls={`${id}-panel`}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`}>
        {children}
      </div>
    </>
  );
}
