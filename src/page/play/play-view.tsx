import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Models } from "../api/models.ts";
import { useChanges } from "../parts/changing.ts";
import { useModal } from "../parts/modal.ts";
import { Composer } from "./composer.tsx";
import type { Conversation } from "./conversation.ts";
import { ConversationList, NewConversation, Notices } from "./conversation-list.tsx";
import type { Conversations } from "./conversations.ts";
import { freshValues, type Settings } from "./settings.ts";
import { SettingsPanel } from "./settings-panel.tsx";
import { TokenTip } from "./token-tip.tsx";
import { type Example, examples } from "./examples.ts";
import { AnswerView } from "./answer-view.tsx";
import { QuestionView } from "./question-view.tsx";
import type { Turn } from "./turn.ts";
import { useFollowEnd, useStopKey } from "./follow-end.ts";

interface Properties {
  readonly models: Models;
  readonly settings: Settings;
  readonly conversations: Conversations;
  readonly onCompare: () => void;
}

/** Windows from this width on show the list of conversations next to the conversation; page.css has the same width. */
const wide = matchMedia("(min-width: 75rem)");

/** The conversations, the one that is shown, and the settings. */
export function PlayView({ models, settings, conversations, onCompare }: Properties): VNode {
  useChanges(conversations);
  const [panelOpen, setPanelOpen] = useState(false);
  const [drawerOpen, setDrawerOpen] = useState(false);
  const [isWide, setIsWide] = useState(wide.matches);
  useEffect(() => {
    const look = (): void => setIsWide(wide.matches);
    wide.addEventListener("change", look);
    return () => wide.removeEventListener("change", look);
  }, []);
  const { current } = conversations;
  const [, renderAgain] = useState({});
  /** Renders before the next event, not with the next frame. */
  const onChosen = (): void => {
    setDrawerOpen(false);
    renderAgain({});
  };
  const list = (
    <ConversationList
      conversations={conversations}
      settings={settings}
      keyNeeded={models.keyNeeded}
      onChosen={onChosen}
    />
  );
  return (
    <div class={panelOpen ? "play panel-open" : "play"}>
      {isWide && (
        <nav class="sidebar" aria-label="Conversations">
          {list}
        </nav>
      )}
      {!isWide && drawerOpen && <Drawer onClose={() => setDrawerOpen(false)}>{list}</Drawer>}
      <section class="talk" aria-label="Conversation">
        {!isWide && (
          <div class="row talk-bar">
            <button type="button" aria-haspopup="dialog" onClick={() => setDrawerOpen(true)}>
              Conversations
            </button>
            <bdi class="title" dir="auto">
              {current.title}
            </bdi>
            {conversations.address !== "play" && <NewConversation conversations={conversations} onChosen={onChosen} />}
          </div>
        )}
        <Talk
          key={current.id}
          models={models}
          settings={settings}
          conversation={current}
          sought={conversations.sought}
          loading={conversations.loading}
          onRequest={() => setPanelOpen(false)}
          notices={!isWide && !drawerOpen && <Notices conversations={conversations} />}
        >
          {!panelOpen && <ModelName settings={settings} onClick={() => setPanelOpen(true)} />}
          <button
            type="button"
            class="quiet only-narrow"
            aria-expanded={panelOpen}
            aria-controls="settings"
            onClick={() => setPanelOpen(!panelOpen)}
          >
            {panelOpen ? "Hide settings" : "Settings"}
          </button>
          <button type="button" class="quiet" id="compare" aria-pressed={false} onClick={onCompare}>
            Compare
          </button>
        </Talk>
      </section>
      <aside id="settings" aria-label="Settings" class="panel">
        <SettingsPanel models={models} settings={settings} />
      </aside>
      <TokenTip />
    </div>
  );
}

/** The model that is asked, where the settings are out of sight. */
function ModelName({ settings, onClick }: { readonly settings: Settings; readonly onClick: () => void }): VNode | null {
  useChanges(settings);
  if (settings.model === "") return null;
  return (
    <button
      type="button"
      class="quiet only-narrow asked-model"
      aria-label={`Model: ${settings.model}`}
      onClick={onClick}
    >
      {settings.model}
    </button>
  );
}

/** The list of conversations over the page, on narrow screens. */
function Drawer({ onClose, children }: { readonly onClose: () => void; readonly children: ComponentChildren }): VNode {
  const dialog = useModal();
  return (
    <dialog ref={dialog} class="drawer" aria-label="Conversations" onClose={onClose}>
      {children}
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}

interface TalkProperties {
  readonly models: Models;
  readonly settings: Settings;
  readonly conversation: Conversation;
  /** The id of a turn to scroll to. */
  readonly sought?: string;
  readonly loading?: boolean;
  /** An answer was requested. */
  readonly onRequest?: () => void;
  /** Shown above the composer. */
  readonly notices?: ComponentChildren;
  /** Controls of the composer. */
  readonly children?: ComponentChildren;
}

/** A conversation with its composer. Several can be shown side by side. */
export function Talk({
  models,
  settings,
  conversation,
  sought = "",
  loading = false,
  onRequest,
  notices,
  children,
}: TalkProperties): VNode {
  useChanges(conversation);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  /** Whether the conversation scrolls with the answer. */
  const follows = useFollowEnd(scroller, content);

  useStopKey(scroller, () => conversation.stop());

  const { turns, open, requests } = conversation;
  const asks = turns.at(-2)?.kind === "question" ? requests : 0;
  useEffect(() => {
    if (asks === 0) return;
    // On a narrow screen, the settings cover the conversation.
    onRequest?.();
    follows.current = true;
    scroller.current?.scrollTo(0, scroller.current.scrollHeight);
  }, [asks]);
  useEffect(() => {
    if (sought === "" || !conversation.tree.get(sought)) return;
    follows.current = false;
    scroller.current?.querySelector(`[data-turn="${CSS.escape(sought)}"]`)?.scrollIntoView({ block: "start" });
  }, [sought]);
  return (
    <>
      <div class="scroller" ref={scroller} tabIndex={-1}>
        <div class="column" ref={content}>
          {models.state === "waiting" && (
            <p class="banner" role="status">
              {models.message}
            </p>
          )}
          {turns.length === 0 && !loading && <Examples settings={settings} conversation={conversation} />}
          {turns.map((turn) => (
            // Versions of a turn replace each other: the focus stays on the button that pages through them.
            <TurnView
              key={turn.parent}
              turn={turn}
              conversation={conversation}
              settings={settings}
              keyNeeded={models.keyNeeded}
              waits={turn.id === open?.id}
            />
          ))}
        </div>
      </div>
      {notices}
      <Composer conversation={conversation} ready={models.state === "ready"} settings={settings} models={models}>
        {children}
      </Composer>
    </>
  );
}

/** What a page without a conversation offers. */
export function Examples({
  settings,
  conversation,
}: {
  readonly settings: Settings;
  readonly conversation: Conversation;
}): VNode {
  const go = (example: Example): void => {
    settings.useExample(conversation.id, { ...freshValues, ...example.settings });
    conversation.ask(example.question, []);
  };
  return (
    <div class="examples">
      <h2>Ask a model, and see what it says</h2>
      <p>Write below, or begin with one of these.</p>
      <ul>
        {examples.map((example) => (
          <li key={example.title}>
            <button type="button" onClick={() => go(example)}>
              <strong>{example.title}</strong>
              <span>{example.question}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface TurnProperties {
  readonly turn: Turn;
  readonly conversation: Conversation;
  readonly settings: Settings;
  readonly keyNeeded: boolean;
  /** Its calls wait for their results. */
  readonly waits: boolean;
}

export function TurnView({ turn, conversation, settings, keyNeeded, waits }: TurnProperties): VNode {
  if (turn.kind === "question") return <QuestionView turn={turn} conversation={conversation} />;
  if (turn.kind === "answer")
    return (
      <AnswerView turn={turn} conversation={conversation} settings={settings} keyNeeded={keyNeeded} waits={waits} />
    );
  return (
    <article class="turn results" data-turn={turn.id}>
      {turn.results.map(({ callId, name, text }) => (
        <div key={callId}>
          <h2>{name} gave back</h2>
          <pre dir="auto">{text}</pre>
        </div>
      ))}
    </article>
  );
}
