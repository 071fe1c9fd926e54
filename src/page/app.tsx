import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Models } from "./api/models.ts";
import { useChanges, announcement } from "./parts/changing.ts";
import { CheckView } from "./check/check-view.tsx";
import { InspectView } from "./inspect/inspect-view.tsx";
import { JudgeView } from "./judge/judge-view.tsx";
import { Conversations } from "./play/conversations.ts";
import { PlayView } from "./play/play-view.tsx";
import { Settings } from "./play/settings.ts";
import { clientKey } from "./api/call-api.ts";
import type { Parameter } from "./play/parameter.ts";

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
  const conversations = useMemo(() => new Conversations(settings), []);
  const [{ view, chosen }, setPlace] = useState(placeInAddress());
  const [keyRequested, setKeyRequested] = useState(false);
  useChanges(models);
  useChanges(conversations);

  useEffect(() => {
    const follow = (): void => setPlace(placeInAddress());
    addEventListener("hashchange", follow);
    void models.ask().then(() => settings.set({ model: settings.model || (models.names[0] ?? "") }));
    void conversations.start();
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
            <a
              key={name}
              href={name === "play" ? `#${conversations.address}` : `#${name}`}
              aria-current={name === view ? "page" : undefined}
            >
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
          <PlayView models={models} settings={settings} conversations={conversations} />
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

/** Where screen readers hear announcements. */
export function Announcer(): VNode {
  useChanges(announcement);
  return (
    <div class="unseen" role="status" aria-live="polite">
      {announcement.text}
    </div>
  );
}

interface Properties {
  /** The key that was entered before is not one of the server's. */
  readonly refused: boolean;
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

/** Asks for the key of a server that has one. */
export function KeyDialog({ refused, onDone, onCancel }: Properties): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const use = (event: Event): void => {
    event.preventDefault();
    clientKey.value = input.current?.value.trim() ?? "";
    dialog.current?.close();
    onDone();
  };
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onClose={onCancel}>
      <form class="stack" onSubmit={use}>
        <h2 id="key-title">This server wants a key</h2>
        <label class="field">
          <span>API key</span>
          <input
            ref={input}
            type="password"
            autocomplete="off"
            defaultValue={clientKey.value}
            aria-describedby="key-note"
            aria-invalid={refused}
          />
        </label>
        <p id="key-note" class="note">
          {refused && <strong>The server does not know this key. </strong>}
          It is kept for this tab only, and forgotten when the tab is closed.
        </p>
        <div class="row end">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main">
            Use this key
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Loads the table of parameters, which the build writes next to the scripts. Returns no parameters if the server has just stopped. */
export async function loadTable(): Promise<readonly Parameter[]> {
  try {
    const response = await fetch(new URL("parameters.json", import.meta.url));
    return (await response.json()) as readonly Parameter[];
  } catch {
    return [];
  }
}
