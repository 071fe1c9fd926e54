import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useChanges } from "../parts/changing.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { useModal } from "../parts/modal.ts";
import type { Answer } from "./answer.ts";
import { RawTextButton } from "./answer-text.tsx";
import { ChoiceView, emptyAnswer } from "./choice-view.tsx";
import type { Conversation } from "./conversation.ts";
import type { Settings } from "./settings.ts";
import { canGoOn } from "./turn.ts";
import type { AnswerTurn } from "./turn.ts";
import { baseUrl } from "../api/call-api.ts";
import { copyAs, languages } from "./copy-as.ts";
import type { Language } from "./copy-as.ts";
import type { Parameter } from "./parameter.ts";
import type { ChatBody } from "./request-body.ts";
import type { PlayTool } from "./tool.ts";
import { Versions } from "./versions.tsx";
import { countInWords } from "../parts/count-in-words.ts";

interface Properties {
  readonly turn: AnswerTurn;
  readonly conversation: Conversation;
  readonly settings: Settings;
  readonly keyNeeded: boolean;
  readonly waits: boolean;
}

/** A model's answer: its choices side by side, and its usage and timing. */
export function AnswerView({ turn, conversation, settings, keyNeeded, waits }: Properties): VNode {
  const { id, answer, request, chosen } = turn;
  useChanges(answer);
  const [copies, setCopies] = useState(false);
  const { choices, state, failure } = answer;
  const several = choices.length > 1;
  const hasTokens = choices.some(({ text }) => text.hasTokens);
  return (
    <article class={several ? "turn answer wide" : "turn answer"} aria-busy={state === "running"} data-turn={id}>
      <header>
        <h2>{request.model || "Assistant"}</h2>
        <Versions turn={turn} conversation={conversation} />
        {!hasTokens && <RawTextButton />}
        <button type="button" class="quiet" onClick={() => conversation.askAgain(id)}>
          Ask again
        </button>
        <button type="button" class="quiet" onClick={() => setCopies(true)}>
          Copy as…
        </button>
        <CopyButton label="Copy text" text={() => choices[chosen]?.text.toString() ?? ""} />
      </header>
      {state === "running" && answer.firstAfterMs === undefined && <p class="waiting">Waiting for the first token…</p>}
      <div class={several ? "choices" : undefined}>
        {choices.map((choice, at) => (
          <ChoiceView
            key={`${id} ${at}`}
            choice={choice}
            state={state}
            json={request["response_format"] !== undefined}
            {...(several && {
              number: at + 1,
              chosen: at === chosen,
              onChoose: () => conversation.choose(id, at),
            })}
          />
        ))}
      </div>
      {failure && (
        <div class="banner wrong">
          <strong>{failureTitle(answer.status)}</strong>
          <p>{failure.message}</p>
          {answer.retryAfterSeconds > 0 && <p>Try again in {waitInWords(answer.retryAfterSeconds)}.</p>}
          <p class="note">
            {[failure.code, failure.param, answer.requestId].filter((text) => typeof text === "string").join(" · ")}
          </p>
        </div>
      )}
      {hasTokens && (
        <p class="note">
          A stronger background marks a less probable token. Point at a token to see its alternatives. With token
          probabilities, the text is not rendered as Markdown.
        </p>
      )}
      {state === "done" && choices.length === 0 && <p class="finish">{emptyAnswer}</p>}
      {state === "interrupted" && (
        <p class="finish">Interrupted: the page was closed before the answer was complete.</p>
      )}
      {canGoOn(turn) && (
        <p class="row">
          <button type="button" onClick={() => conversation.goOn(id)}>
            Continue
          </button>
        </p>
      )}
      {state === "running" && conversation.runningTurn !== id && <p class="finish">Being received in another tab.</p>}
      {state !== "running" && <p class="facts">{factsOf(answer).join(" · ")}</p>}
      {state !== "running" && answer.cacheMiss !== undefined && <p class="note">{answer.cacheMiss}</p>}
      {waits && <CallResults key={`${id} ${chosen}`} turn={turn} conversation={conversation} tools={settings.tools} />}
      {copies && (
        <CopyAsDialog
          body={conversation.bodyOf(turn)}
          table={settings.table}
          keyNeeded={keyNeeded}
          onClose={() => setCopies(false)}
        />
      )}
    </article>
  );
}

/** Names the failure of an answer by its HTTP status. */
function failureTitle(status: number | undefined): string {
  if (status === undefined) return "There is no answer";
  if (status < 400) return "The answer broke off";
  if (status === 429) return "Too many requests: 429";
  return `The server ${status < 500 ? "refused" : "failed"}: ${status}`;
}

function waitInWords(seconds: number): string {
  return seconds < 120 ? countInWords(Math.ceil(seconds), "second") : countInWords(Math.ceil(seconds / 60), "minute");
}

/** The line below an answer. */
function factsOf(answer: Answer): string[] {
  const { usage, firstAfterMs, tokensPerSecond, state } = answer;
  const facts: string[] = [];
  if (state === "stopped" || state === "interrupted") facts.push(state);
  if (usage) facts.push(countInWords(usage.completionTokens, "token"));
  const reasoning = usage?.completionDetails?.["reasoning_tokens"];
  if (reasoning) facts.push(`${count(reasoning)} of them reasoning`);
  if (tokensPerSecond !== undefined) facts.push(`${count(Math.round(tokensPerSecond))} tokens/s`);
  if (firstAfterMs !== undefined) facts.push(`first token after ${duration(firstAfterMs)}`);
  if (usage) {
    const cached = usage.promptDetails?.["cached_tokens"];
    const of = cached === undefined ? "" : `, ${count(cached)} cached`;
    facts.push(`${countInWords(usage.promptTokens, "prompt token")}${of}`);
  }
  return facts;
}

function count(number: number): string {
  return number.toLocaleString("en");
}

function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

interface CopyAsProperties {
  readonly body: ChatBody;
  readonly table: readonly Parameter[];
  readonly keyNeeded: boolean;
  readonly onClose: () => void;
}

/** The request of an answer, as a program. */
export function CopyAsDialog({ body, table, keyNeeded, onClose }: CopyAsProperties): VNode {
  const dialog = useModal();
  const [language, setLanguage] = useState<Language>("curl");
  const code = copyAs(language, body, { baseUrl: baseUrl.href.replace(/\/$/, ""), keyNeeded, table });
  return (
    <dialog ref={dialog} class="copy-as" aria-labelledby="copy-title" onClose={onClose}>
      <div class="stack">
        <h2 id="copy-title">Ask the same from elsewhere</h2>
        <fieldset class="tabs">
          <legend class="unseen">Language</legend>
          {languages.map((name) => (
            <label key={name}>
              <input type="radio" name="language" checked={name === language} onChange={() => setLanguage(name)} />
              {name}
            </label>
          ))}
        </fieldset>
        <pre tabIndex={0} aria-label={`The request for ${language}`}>
          {code}
        </pre>
        <div class="row end">
          <CopyButton text={() => code} />
          <button type="button" class="main" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </div>
    </dialog>
  );
}

interface CallResultsProperties {
  readonly turn: AnswerTurn;
  readonly conversation: Conversation;
  readonly tools: readonly PlayTool[];
}

/** Where a person answers the calls of a model. */
function CallResults({ turn: { answer, chosen }, conversation, tools }: CallResultsProperties): VNode {
  const calls = answer.choices[chosen]?.calls ?? [];
  const [texts, setTexts] = useState(calls.map(({ name }) => tools.find((tool) => tool.name === name)?.canned ?? ""));
  return (
    <form
      class="stack call-results"
      onSubmit={(event) => {
        event.preventDefault();
        conversation.giveResults(calls.map(({ id, name }, at) => ({ callId: id, name, text: texts[at] ?? "" })));
      }}
    >
      {calls.map(({ id, name }, at) => (
        <label key={id} class="field">
          <span>
            What <code>{name}</code> gives back
          </span>
          <textarea
            rows={2}
            dir="auto"
            class="code"
            value={texts[at]}
            onInput={({ currentTarget: { value } }) =>
              setTexts(texts.map((text, other) => (other === at ? value : text)))
            }
          />
        </label>
      ))}
      <div class="row end">
        <button type="submit" class="main">
          {calls.length === 1 ? "Give the result" : "Give the results"}
        </button>
      </div>
    </form>
  );
}
