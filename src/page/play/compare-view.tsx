import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Models } from "../api/models.ts";
import { useChanges } from "../parts/changing.ts";
import type { Answer } from "./answer.ts";
import {
  Comparison,
  type Difference,
  differencesOf,
  lastAnswer,
  measureRows,
  measuresOf,
  type Round,
  roundsOf,
  verdict,
} from "./comparison.ts";
import { Composer } from "./composer.tsx";
import { useFollowEnd, useStopKey } from "./follow-end.ts";
import { TurnView } from "./play-view.tsx";
import { QuestionView } from "./question-view.tsx";
import { SettingsPanel } from "./settings-panel.tsx";

export { Comparison };

interface Properties {
  readonly models: Models;
  readonly comparison: Comparison;
  readonly onClose: () => void;
}

/** Two models, or two settings, side by side: one question is asked to both. */
export function CompareView({ models, comparison, onClose }: Properties): VNode {
  useChanges(comparison);
  const [a, b] = comparison.sides;
  useChanges(a.settings);
  useChanges(b.settings);
  const [panelOpen, setPanelOpen] = useState(false);
  const [shownSide, setShownSide] = useState(a);
  const root = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useFollowEnd(scroller, content);

  useLayoutEffect(() => {
    root.current?.querySelector<HTMLElement>(".composer textarea")?.focus();
    // Play is shown in the next frame.
    return () => void requestAnimationFrame(() => document.getElementById("compare")?.focus());
  }, []);
  useStopKey(scroller, () => comparison.stop());
  const rounds = [roundsOf(a.conversation.turns), roundsOf(b.conversation.turns)] as const;
  const count = Math.max(rounds[0].length, rounds[1].length);
  const lastId = lastAnswerId(rounds[0].at(-1));
  useEffect(() => {
    if (lastId === undefined) return;
    // On a narrow screen, the settings cover the conversation.
    setPanelOpen(false);
    follows.current = true;
    scroller.current?.scrollTo(0, scroller.current.scrollHeight);
  }, [lastId]);

  const differences = differencesOf(
    [a.settings.values, b.settings.values],
    comparison.sides.map(({ settings }) => models.defaults.get(settings.model)),
  );
  const isEqual = a.settings.model === b.settings.model && differences.length === 0;
  return (
    <div class={panelOpen ? "play comparing panel-open" : "play comparing"} ref={root}>
      <section class="talk compare" aria-label="Comparison">
        <div class="compare-heads">
          {comparison.sides.map(({ name, settings }, at) => (
            <div key={name}>
              <label class="row">
                <strong>{name}</strong>
                <select
                  aria-label={`Model ${name}`}
                  value={settings.model}
                  onChange={({ currentTarget }) => settings.set({ model: currentTarget.value })}
                >
                  {models.names.map((model) => (
                    <option key={model}>{model}</option>
                  ))}
                </select>
              </label>
              <Differences all={differences} side={at} />
            </div>
          ))}
        </div>
        <div class="scroller" ref={scroller} tabIndex={-1}>
          <div class="column" ref={content}>
            {count === 0 && (
              <div class="compare-empty">
                <p>
                  {isEqual
                    ? "A and B are the same. Choose another model for B, or change its settings."
                    : "Write a question: A and B answer it side by side."}
                </p>
                <p class="note">
                  They answer at the same time. Two local models share the processor, so each is slower than alone.
                </p>
              </div>
            )}
            {Array.from({ length: count }, (_, at) => (
              <RoundView key={at} comparison={comparison} models={models} rounds={[rounds[0][at], rounds[1][at]]} />
            ))}
          </div>
        </div>
        <Composer
          conversation={comparison}
          ready={models.state === "ready"}
          settings={a.settings}
          otherModel={b.settings.model}
          models={models}
        >
          <button
            type="button"
            class="quiet only-narrow"
            aria-expanded={panelOpen}
            aria-controls="compare-settings"
            onClick={() => setPanelOpen(!panelOpen)}
          >
            {panelOpen ? "Hide settings" : "Settings"}
          </button>
          <button type="button" class="quiet" aria-pressed onClick={onClose}>
            Compare
          </button>
          {count > 0 && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                comparison.clear();
                root.current?.querySelector<HTMLElement>(".composer textarea")?.focus();
              }}
            >
              New comparison
            </button>
          )}
        </Composer>
      </section>
      <aside id="compare-settings" aria-label="Settings" class="panel">
        <fieldset class="tabs">
          <legend class="unseen">Settings of</legend>
          {comparison.sides.map((side) => (
            <label key={side.name}>
              <input
                type="radio"
                name="compared-side"
                checked={side === shownSide}
                onChange={() => setShownSide(side)}
              />
              Settings of {side.name}
            </label>
          ))}
        </fieldset>
        <SettingsPanel key={shownSide.name} models={models} settings={shownSide.settings} />
      </aside>
    </div>
  );
}

/** The settings of one side that the other one does not have. */
function Differences({ all, side }: { readonly all: readonly Difference[]; readonly side: number }): VNode | null {
  if (all.length === 0) return null;
  return (
    <ul class="differences" aria-label="Settings that differ">
      {all.map(({ name, values }) => (
        <li key={name}>
          {name}: <strong>{values[side]}</strong>
        </li>
      ))}
    </ul>
  );
}

interface RoundProperties {
  readonly comparison: Comparison;
  readonly models: Models;
  readonly rounds: readonly [a: Round | undefined, b: Round | undefined];
}

/** A question, both answers, and their numbers. */
function RoundView({ comparison, models, rounds }: RoundProperties): VNode {
  const asked = rounds.findIndex((round) => round !== undefined);
  const question = rounds[asked]?.question;
  const [answerA, answerB] = rounds.map((round) => lastAnswer(round?.turns ?? []));
  return (
    <div class="round">
      {question && comparison.sides[asked] && (
        <QuestionView turn={question} conversation={comparison.sides[asked].conversation} />
      )}
      <div class="compare-sides">
        {comparison.sides.map(({ name, settings, conversation }, at) => (
          <div key={name} role="group" aria-label={`Answer of ${name}`} data-side={name}>
            {(rounds[at]?.turns ?? []).map((turn) => (
              <TurnView
                key={turn.id}
                turn={turn}
                conversation={conversation}
                settings={settings}
                keyNeeded={models.keyNeeded}
                waits={turn.id === conversation.open?.id}
              />
            ))}
            {conversation.running && rounds[at]?.turns.at(-1) === conversation.turns.at(-1) && (
              <div class="row">
                <button
                  type="button"
                  onClick={() => {
                    conversation.stop();
                    // The button disappears.
                    document.querySelector<HTMLElement>(".compare .composer textarea")?.focus();
                  }}
                >
                  Stop {name}
                </button>
              </div>
            )}
          </div>
        ))}
      </div>
      {answerA && answerB && <Numbers answers={[answerA, answerB]} />}
    </div>
  );
}

/** The numbers of two answers, once both are complete. */
function Numbers({ answers: [a, b] }: { readonly answers: readonly [a: Answer, b: Answer] }): VNode | null {
  useChanges(a);
  useChanges(b);
  if (a.state === "running" || b.state === "running") return null;
  const measures = [measuresOf(a), measuresOf(b)] as const;
  const rows = measureRows(...measures);
  return (
    <div class="numbers">
      <p class="comparison-verdict">{verdict(...measures)}</p>
      {rows.length > 0 && (
        <table>
          <caption class="unseen">The answers in numbers</caption>
          <thead>
            <tr>
              <td />
              <th scope="col">A</th>
              <th scope="col">B</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, values, better }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {values.map((value, at) => (
                  <td key={at} class={at === better ? "better" : undefined}>
                    {value}
                    {at === better && <span class="unseen"> (better)</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function lastAnswerId(round: Round | undefined): unknown {
  return round?.turns.at(-1)?.id;
}
