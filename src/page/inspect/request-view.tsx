import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { InspectedRequest, RequestSummary } from "../../inspect/inspected-request.ts";
import { recordingOf as captureOfRequest } from "../../inspect/capture-of.ts";
import { AdminRefusal, askAdmin } from "../api/ask-admin.ts";
import { announcement } from "../parts/announcement.ts";
import { saveFile } from "../parts/save-file.ts";
import { Tabs } from "../parts/tabs.tsx";
import { EventsView } from "./events-view.tsx";
import { FactsView } from "./facts-view.tsx";
import { FindingsView } from "./findings-view.tsx";
import { PromptView } from "./prompt-view.tsx";
import { SentView } from "./sent-view.tsx";
import { WireView } from "./wire-view.tsx";

const tabs = [
  { name: "request", title: "Request" },
  { name: "prompt", title: "Prompt" },
  { name: "wire", title: "Wire" },
  { name: "events", title: "Events" },
  { name: "findings", title: "Findings" },
] as const;

export type TabName = (typeof tabs)[number]["name"];

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
      <FactsView summary={shown ?? summary} actions={<Download request={shown} />} />
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      {shown && (
        <Tabs label="What to see of the request" tabs={tabs} current={tab} onChoose={onTab}>
          <TabContent key={tab} tab={tab} request={shown} />
        </Tabs>
      )}
    </article>
  );
}

function TabContent({ tab, request }: { readonly tab: TabName; readonly request: InspectedRequest }): VNode {
  switch (tab) {
    case "request":
      return <SentView request={request} />;
    case "prompt":
      return <PromptView request={request} />;
    case "wire":
      return <WireView request={request} />;
    case "events":
      return <EventsView request={request} />;
    case "findings":
      return <FindingsView request={request} />;
  }
}

/** The request with its answer as one file. */
function Download({ request }: { readonly request: InspectedRequest | undefined }): VNode | null {
  if (!request) return null;
  const capture = captureOfRequest(request);
  if (capture === null)
    return (
      <p class="note">
        {request.outcome === "open"
          ? "It can be downloaded when it is over."
          : "It was never answered, or was too long to be kept whole: there is no file of it."}
      </p>
    );
  const download = (): void => {
    saveFile(`${request.id}.jsonl`, "application/x-ndjson", `${capture}\n`);
    announcement.say("Downloaded");
  };
  return (
    <button
      type="button"
      onClick={download}
      title="One file, as truewire record writes it: for replay, repair and check"
    >
      Download with its answer
    </button>
  );
}
