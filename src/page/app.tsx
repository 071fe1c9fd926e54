import type { ComponentType, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Models } from "./api/models.ts";
import type { KeysView } from "./keys/keys-view.tsx";
import { Lazy } from "./parts/lazy.tsx";
import { useChanges, announcement } from "./parts/changing.ts";
import { useModal } from "./parts/modal.ts";
import { CheckView } from "./check/check-view.tsx";
import { InspectView } from "./inspect/inspect-view.tsx";
import { ModelsView } from "./models/models-view.tsx";
import type { Comparison, CompareView } from "./play/compare-view.tsx";
import { tabComparison } from "./play/comparison-store.ts";
import { Conversations } from "./play/conversations.ts";
import { PlayView } from "./play/play-view.tsx";
import { keepSettings } from "./play/presets.ts";
import { Settings } from "./play/settings.ts";
import { clientKey } from "./api/call-api.ts";
import type { Parameter } from "./play/parameter.ts";

const views = [
  { name: "play", title: "Play" },
  { name: "models", title: "Models" },
  { name: "keys", title: "Keys" },
  { name: "inspect", title: "Inspect" },
  { name: "check", title: "Check" },
] as const;

const loadKeys = async (): Promise<ComponentType<Parameters<typeof KeysView>[0]>> =>
  (await import("./keys/keys-view.tsx")).KeysView;

/** The page: its header and one of its views. The view is part of the address, so that it can be bookmarked and shared. */
export function App(): VNode {
  const models = useMemo(() => new Models(), []);
  const settings = useMemo(() => {
    const settings = new Settings();
    addEventListener("pagehide", keepSettings(settings));
    return settings;
  }, []);
  const conversations = useMemo(() => new Conversations(settings), []);
  const [{ view, chosen, query }, setPlace] = useState(placeInAddress());
  // A view that was shown stays mounted.
  const keysShown = useRef(false);
  keysShown.current ||= view === "keys";
  const [comparing, setComparing] = useState(false);
  const [compared, setCompared] = useState<{
    readonly CompareView: typeof CompareView;
    readonly comparison: Comparison;
  }>();
  const [keyRequested, setKeyRequested] = useState(false);
  useChanges(models);
  useChanges(conversations);

  const visible = useTabVisible();
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    const follow = (): void => setPlace(placeInAddress());
    addEventListener("hashchange", follow);
    const known = models.ask().then(() => settings.chooseAmong(models.names));
    void conversations.start();
    const table = loadTable().then((table) => settings.set({ table }));
    if (tabComparison()?.shown) void Promise.all([known, table]).then(compare);
    return () => removeEventListener("hashchange", follow);
  }, []);

  const keyMissing = models.state === "key-needed" || models.state === "key-refused";
  const useKey = (): void => {
    setKeyRequested(false);
    void models.ask().then(() => settings.chooseAmong(models.names));
  };
  const compare = async (): Promise<void> => {
    try {
      const { CompareView, Comparison } = await import("./play/compare-view.tsx");
      // A comparison that was begun continues, also after a reload.
      const begun = compared?.comparison.hasBegun ? compared.comparison : undefined;
      const comparison =
        begun ?? (await Comparison.restored(settings, models.names)) ?? new Comparison(settings, models.names);
      comparison.shown = true;
      setCompared({ CompareView, comparison });
      setComparing(true);
    } catch {
      conversations.current.refuse("the comparison cannot be loaded, as the server does not answer");
    }
  };
  const inspect = (id: string, query: string): void => {
    const [path = ""] = location.hash.slice(1).split("?");
    // What else the address says of a request stays, such as its tab.
    const [, current, ...rest] = path.split("/");
    const place = ["inspect", ...(id === "" ? [] : [id]), ...(current === id ? rest : [])].join("/");
    // Each request in a list would else be a step back.
    history.replaceState(null, "", `#${place}${query === "" ? "" : `?${query}`}`);
    setPlace(placeInAddress());
  };
  return (
    <>
      {/* Not a link to a place of its own: the address names the view. */}
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          (document.querySelector<HTMLElement>(".view:not([hidden]) .composer textarea") ?? main.current)?.focus();
        }}
      >
        Skip to the content
      </a>
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
      <main ref={main} tabIndex={-1} id="main">
        {/* All views stay mounted: a conversation and its answer continue while another view is shown. */}
        <div class="view" hidden={view !== "play" || comparing}>
          <PlayView
            models={models}
            settings={settings}
            conversations={conversations}
            onCompare={() => void compare()}
          />
        </div>
        {compared && comparing && (
          <div class="view" hidden={view !== "play"}>
            <compared.CompareView
              models={models}
              comparison={compared.comparison}
              onClose={() => {
                compared.comparison.shown = false;
                setComparing(false);
              }}
            />
          </div>
        )}
        <div class="view" hidden={view !== "models"}>
          <ModelsView shown={visible && view === "models"} />
        </div>
        <div class="view" hidden={view !== "keys"}>
          {keysShown.current && <Lazy load={loadKeys} properties={{ shown: visible && view === "keys" }} />}
        </div>
        <div class="view" hidden={view !== "inspect"}>
          <InspectView shown={visible && view === "inspect"} chosen={chosen} query={query} onPlace={inspect} />
        </div>
        <div class="view" hidden={view !== "check"}>
          <CheckView />
        </div>
      </main>
      {(keyRequested || keyMissing) && (
        <KeyDialog
          refusal={models.state === "key-refused" ? models.message : ""}
          onDone={useKey}
          onCancel={() => setKeyRequested(false)}
        />
      )}
      <Announcer />
    </>
  );
}

/** How long a tab is hidden before its streams of the admin API are closed, in milliseconds: a short look at another tab costs nothing. */
const hiddenMs = 30_000;

/** False once the tab has been hidden for `hiddenMs`, until it is visible again. */
function useTabVisible(): boolean {
  const [visible, setVisible] = useState(true);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const change = (): void => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") setVisible(true);
      else timer = setTimeout(() => setVisible(false), hiddenMs);
    };
    change();
    document.addEventListener("visibilitychange", change);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", change);
    };
  }, []);
  return visible;
}

interface Place {
  readonly view: (typeof views)[number]["name"];
  readonly chosen: string;
  readonly query: string;
}

/** The view, and in Inspect the id of a request and the filter: `#inspect/req_…?outcome=failed`. */
function placeInAddress(): Place {
  const [path = "", ...query] = location.hash.slice(1).split("?");
  const [view, chosen = ""] = path.split("/");
  return { view: views.find(({ name }) => name === view)?.name ?? "play", chosen, query: query.join("?") };
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
  /** What the server says of the key that was entered before; "": nothing. */
  readonly refusal: string;
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

/** Asks for the key of a server that has one. */
export function KeyDialog({ refusal, onDone, onCancel }: Properties): VNode {
  const dialog = useModal();
  const input = useRef<HTMLInputElement>(null);
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
            aria-invalid={refusal !== ""}
          />
        </label>
        <p id="key-note" class="note">
          {refusal !== "" && <strong>{refusal} </strong>}
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
