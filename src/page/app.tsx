import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { KeyDialog } from "./key-dialog.tsx";
import { Models } from "./api/models.ts";
import { Announcer } from "./parts/announcer.tsx";
import { useChanges } from "./parts/changing.ts";
import { CheckView } from "./check/check-view.tsx";
import { JudgeView } from "./judge/judge-view.tsx";
import { Conversation } from "./play/conversation.ts";
import { loadTable } from "./play/load-table.ts";
import { PlayView } from "./play/play-view.tsx";
import { Settings } from "./play/settings.ts";

const views = [
  { name: "play", title: "Play" },
  { name: "judge", title: "Judge" },
  { name: "check", title: "Check" },
] as const;

/** The page: its head, and one of its views. The view stands in the address, so that it can be kept and shared. */
export function App(): VNode {
  const models = useMemo(() => new Models(), []);
  const settings = useMemo(() => new Settings(), []);
  const conversation = useMemo(() => new Conversation(settings), []);
  const [view, setView] = useState(viewInAddress());
  const [keyAsked, setKeyAsked] = useState(false);
  useChanges(models);

  useEffect(() => {
    const follow = (): void => setView(viewInAddress());
    addEventListener("hashchange", follow);
    void models.ask().then(() => settings.set({ model: settings.model || (models.names[0] ?? "") }));
    void loadTable().then((table) => settings.set({ table }));
    return () => removeEventListener("hashchange", follow);
  }, []);

  const keyMissing = models.state === "key-needed" || models.state === "key-refused";
  const useKey = (): void => {
    setKeyAsked(false);
    void models.ask().then(() => settings.set({ model: settings.model || (models.names[0] ?? "") }));
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
          <button type="button" class="quiet" onClick={() => setKeyAsked(true)}>
            Key…
          </button>
        )}
      </header>
      <main>
        {/* Both stay: a conversation and its answer go on while somebody looks at another view. */}
        <div class="view" hidden={view !== "play"}>
          <PlayView models={models} settings={settings} conversation={conversation} />
        </div>
        <div class="view" hidden={view !== "judge"}>
          <JudgeView />
        </div>
        <div class="view" hidden={view !== "check"}>
          <CheckView />
        </div>
      </main>
      {(keyAsked || keyMissing) && (
        <KeyDialog refused={models.state === "key-refused"} onDone={useKey} onCancel={() => setKeyAsked(false)} />
      )}
      <Announcer />
    </>
  );
}

function viewInAddress(): (typeof views)[number]["name"] {
  return views.find(({ name }) => `#${name}` === location.hash)?.name ?? "play";
}
