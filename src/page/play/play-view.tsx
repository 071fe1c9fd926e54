import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Models } from "../api/models.ts";
import { useChanges } from "../parts/changing.ts";
import { Composer } from "./composer.tsx";
import type { Conversation } from "./conversation.ts";
import { freshValues, type Settings } from "./settings.ts";
import { SettingsPanel } from "./settings-panel.tsx";
import { TokenTip } from "./token-tip.tsx";
import { type Example, examples } from "./examples.ts";
import { AnswerView } from "./answer-view.tsx";
import { QuestionView } from "./question-view.tsx";
import type { Turn } from "./turn.ts";
import { useFollowEnd } from "./follow-end.ts";

interface Properties {
  readonly models: Models;
  readonly settings: Settings;
  readonly conversation: Conversation;
  readonly onCompare: () => void;
}

/** A conversation with a model, and its settings. */
export function PlayView({ models, settings, conversation, onCompare }: Properties): VNode {
  useChanges(conversation);
  const [panelOpen, setPanelOpen] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  /** Whether the conversation scrolls with the answer. */
  const follows = useFollowEnd(scroller, content);

  useEffect(() => {
    const stop = ({ key, defaultPrevented }: KeyboardEvent): void => {
      if (key === "Escape" && !defaultPrevented && !document.querySelector("dialog[open]")) conversation.stop();
    };
    addEventListener("keydown", stop);
    return () => removeEventListener("keydown", stop);
  }, []);

  const { turns, open } = conversation;
  const lastQuestion = turns.at(-2)?.kind === "question" ? turns.at(-1)?.id : undefined;
  useEffect(() => {
    if (lastQuestion === undefined) return;
    // On a narrow screen, the settings cover the conversation.
    setPanelOpen(false);
    follows.current = true;
    scroller.current?.scrollTo(0, scroller.current.scrollHeight);
  }, [lastQuestion]);
  return (
    <div class={panelOpen ? "play panel-open" : "play"}>
      <section class="talk" aria-label="Conversation">
        <div class="scroller" ref={scroller} tabIndex={-1}>
          <div class="column" ref={content}>
            {models.state === "waiting" && (
              <p class="banner" role="status">
                {models.message}
              </p>
            )}
            {turns.length === 0 && <Examples settings={settings} conversation={conversation} />}
            {turns.map((turn) => (
              <TurnView
                key={turn.id}
                turn={turn}
                conversation={conversation}
                settings={settings}
                keyNeeded={models.keyNeeded}
                waits={turn.id === open?.id}
              />
            ))}
          </div>
        </div>
        <Composer conversation={conversation} ready={models.state === "ready"} settings={settings} blind={models.blind}>
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
        </Composer>
      </section>
      <aside id="settings" aria-label="Settings" class="panel">
        <SettingsPanel models={models} settings={settings} />
      </aside>
      <TokenTip />
    </div>
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
    settings.set({ ...freshValues, preset: "", ...example.settings });
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
    <article class="turn results">
      {turn.results.map(({ callId, name, text }) => (
        <div key={callId}>
          <h2>{name} gave back</h2>
          <pre>{text}</pre>
        </div>
      ))}
    </article>
  );
}
