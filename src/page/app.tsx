import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { KeyDialog } from "./key-dialog.tsx";
import { Models } from "./api/models.ts";
import { Announcer } from "./parts/announcer.tsx";
import { useChanges } from "./parts/changing.ts";
import { CheckView } from "./check/check-view.tsx";
import { InspectView } from "./inspect/inspect-view.tsx";
import { JudgeView } from "./judge/judge-view.tsx";
import { Conversation } from "./play/conversation.ts";
import { loadTable } from "./play/load-table.ts";
import { PlayView } from "./play/play-view.tsx";
import { Settings } from "./play/settings.ts";

const views = [
  { name: "play", title: "Play" },
  { name: "inspect", title: "Inspect" },
  { name: "judge", title: "Judge" },
  { name: "check", title: "Check" },
] as const;

/** The page: its header and one of its views. The view is part of the address, so that it can be bookmarked and shared. */
export function App(): VNode {
  const models = useMemo(() => new Models(), []);
  const settings = useMemo(() => new Settings(), []);
  const conversation = useMemo(() => new Conversation(settings), []);
  const [{ view, chosen }, setPlace] = useState(placeInAddress());
  const [keyRequested, setKeyRequested] = useState(false);
  useChanges(models);

  useEffect(() => {
    const follow = (): void => setPlace(placeInAddress());
    addEventListener("hashchange", follow);
    void models.ask().then(() => settings.set({ model: settings.model || (models.names[0] ?? "") }));
    void loadTable().then((table) => settings.set({ table }));
    return () => removeEventListener("hashchange", follow);
  }, []);

  const keyMissing = models.state === "key-needed" || models.state === "key-refused";
  const useKey = (): void => {
    setKeyRequested(false);
    void models.ask().then(() => settings.set({ model: settings.model || (models.names[0] ?? "") }));
  };
  const choose = (id: string): void => {
    // Each request in a list would else be a step back.
    history.replaceState(null, "", id === "" ? "#inspect" : `#inspect/${id}`);
    setPlace(placeInAddress());
  };
  return (
    <>
      <header class="bar">
        <h1>Truewire</h1>
        <nav aria-label="Views">
          {views.map(({ name, title }) => (
            <a key={name} href={`#${name}`} aria-current={name === view ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        {models.keyNeeded && (
          <button type="button" class="quiet" onClick={() => setKeyRequested(true)}>
            Key…
          </button>
        )}
      </header>
      <main>
        {/* All views stay mounted: a conversation and its answer continue while another view is shown. */}
        <div class="view" hidden={view !== "play"}>
          <PlayView models={models} settings={settings} conversation={conversation} />
        </div>
        <div class="view" hidden={view !== "inspect"}>
          <InspectView shown={view === "inspect"} chosen={chosen} onChoose={choose} />
        </div>
        <div class="view" hidden={view !== "judge"}>
          <JudgeView />
        </div>
        <div class="view" hidden={view !== "check"}>
          <CheckView />
        </div>
      </main>
      {(keyRequested || keyMissing) && (
        <KeyDialog refused={models.state === "key-refused"} onDone={useKey} onCancel={() => setKeyRequested(false)} />
      )}
      <Announcer />
    </>
  );
}

/** The view, and in Inspect the id of a request: `#inspect/req_…`. */
function placeInAddress(): { readonly view: (typeof views)[number]["name"]; readonly chosen: string } {
  const [view, chosen = ""] = location.hash.slice(1).split("/");
  return { view: views.find(({ name }) => name === view)?.name ?? "play", chosen };
}
