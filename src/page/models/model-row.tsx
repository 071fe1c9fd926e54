import type { ComponentChildren, VNode } from "preact";
import { useId, useState } from "preact/hooks";
import { useModal } from "../parts/modal.ts";
import type { ServerProfileReport } from "../../wire/core/engine.ts";
import type { ModelState, PullState, SlotReport } from "../../judge/inspect/model-states.ts";
import { AdminRefusal, askAdmin } from "../api/call-api.ts";
import { ProfileTable } from "../check/server-profiles.tsx";
import type { ModelTask, ServedModels } from "./served-models.ts";
import { bytesText, durationText, kindNames, numberText, pullText, stateText } from "./words.ts";
import { countInWords } from "../parts/count-in-words.ts";

interface Properties {
  readonly model: ModelState;
  readonly models: ServedModels;
}

/** One model: its state, its numbers, what can be done with it, and its details when it is opened. */
export function ModelRow({ model, models }: Properties): VNode {
  const [isOpen, setOpen] = useState(false);
  const detailsId = useId();
  const { name, kind, memory, context_length: context, busy = 0, queued = 0, slots, message } = model;
  const { text, mark } = stateText(model);
  const rate = (slots?.each ?? []).reduce((sum, slot) => sum + (slot.tokens_per_second ?? 0), 0);
  const holdsMemory = ["ready", "loading", "restarting"].includes(model.state);
  const problem = models.problems.get(name);
  const task = models.tasks.get(name);
  const pull = models.states?.pulls.find((each) => each.model === model.source);
  const requests = slots ? `${slots.busy} of ${countInWords(slots.total, "slot")}` : `${numberText(busy)} open`;
  return (
    <li class="model" aria-label={name}>
      <div class="model-line">
        <h2>
          <button
            type="button"
            class="model-name"
            aria-expanded={isOpen}
            aria-controls={detailsId}
            onClick={() => setOpen(!isOpen)}
          >
            {name}
          </button>
          <span class="note">{kind ? kindNames[kind] : "Model"}</span>
        </h2>
        <Cell label="State">
          <span class={`chip ${mark}`}>{text}</span>
          {model.keep === true && <span class="chip">kept</span>}
        </Cell>
        <Cell label="Memory" isEmpty={memory === undefined}>
          {memory === undefined ? (
            "–"
          ) : holdsMemory ? (
            bytesText(memory)
          ) : (
            <span class="note">needs {bytesText(memory)}</span>
          )}
        </Cell>
        <Cell label="Context" isEmpty={context === undefined}>
          {context === undefined ? "–" : numberText(context)}
        </Cell>
        <Cell label="Requests">
          {requests}
          {rate > 0 && <span class="note">{numberText(rate)} tokens/s</span>}
        </Cell>
        <Cell label="Queue" isEmpty={queued === 0}>
          {queued > 0 ? `${queued} waiting` : "–"}
        </Cell>
        <div class="model-actions">{kind === "local" && <Actions model={model} models={models} task={task} />}</div>
      </div>
      {(pull ?? (task && task.verb !== "keep")) && <TaskLine task={task} model={model} pull={pull} />}
      {message !== undefined && !model.progress && <p class="banner wrong">{message}</p>}
      {problem !== undefined && (
        <p class="banner wrong problem">
          {problem}
          <button type="button" class="quiet" onClick={() => models.forget(name)}>
            Dismiss
          </button>
        </p>
      )}
      <div id={detailsId} hidden={!isOpen}>
        {isOpen && <Details model={model} />}
      </div>
    </li>
  );
}

interface CellProperties {
  readonly label: string;
  /** It is left out on narrow screens. */
  readonly isEmpty?: boolean;
  readonly children: ComponentChildren;
}

/** A value of the row. Its label is seen on narrow screens; on wide ones the list has a heading. */
function Cell({ label, isEmpty = false, children }: CellProperties): VNode {
  return (
    <div class={isEmpty ? "cell none" : "cell"}>
      <span class="cell-label">{label}</span>
      {children}
    </div>
  );
}

/** The buttons stay in their places while a change runs, so that the keyboard's focus does. */
function Actions({ model, models, task }: Properties & { readonly task: ModelTask | undefined }): VNode {
  const [confirms, setConfirms] = useState(false);
  const { name, state, keep = false, source = "", busy = 0, load } = model;
  const running = task?.verb === "keep" ? undefined : task;
  const isLoaded = state === "ready" || state === "restarting";
  const unload = (): void => (busy > 0 ? setConfirms(true) : void models.unload(name));
  return (
    <>
      {running && running.verb !== "pull" ? (
        <Button text="Cancel" onClick={running.cancel} />
      ) : isLoaded ? (
        <Button text="Unload" onClick={unload} disabled={running !== undefined} />
      ) : (
        <Button
          text="Load"
          onClick={() => void models.load(name)}
          disabled={running !== undefined || state === "loading"}
        />
      )}
      {running?.verb === "pull" ? (
        <Button text="Cancel" onClick={running.cancel} />
      ) : (
        source.startsWith("hf:") &&
        !isLoaded &&
        state !== "loading" && (
          <Button text="Download" onClick={() => void models.pull(name)} disabled={running !== undefined} />
        )
      )}
      <button
        type="button"
        aria-pressed={keep}
        disabled={running !== undefined}
        title={
          load === "manual"
            ? "It is loaded by hand, so no other model takes its memory."
            : "Never unload it for another model, nor for being idle"
        }
        onClick={() => void models.keep(name, !keep)}
      >
        Keep
      </button>
      {confirms && (
        <ConfirmUnload
          model={model}
          onDone={(confirmed) => {
            setConfirms(false);
            if (confirmed) void models.unload(name);
          }}
        />
      )}
    </>
  );
}

interface ButtonProperties {
  readonly text: string;
  readonly onClick: () => void;
  readonly disabled?: boolean;
}

function Button({ text, onClick, disabled = false }: ButtonProperties): VNode {
  return (
    <button type="button" disabled={disabled} onClick={onClick}>
      {text}
    </button>
  );
}

interface ConfirmProperties {
  readonly model: ModelState;
  readonly onDone: (confirmed: boolean) => void;
}

/** Asks before a busy model is unloaded. The numbers are live. */
function ConfirmUnload({ model: { name, busy = 0, queued = 0 }, onDone }: ConfirmProperties): VNode {
  const dialog = useModal();
  const titleId = useId();
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={() => onDone(dialog.current?.returnValue === "unload")}>
      <form method="dialog" class="stack">
        <h2 id={titleId}>Unload {name}?</h2>
        <p>
          {busy > 0 ? `It is answering ${countInWords(busy, "request")}` : "It is idle now"}
          {queued > 0 && `, and ${queued} more ${queued === 1 ? "waits" : "wait"}`}. No answer is cut: the model is
          unloaded when its answers have ended. Requests that wait or arrive until then load it again.
        </p>
        <div class="row end">
          <button type="submit" value="cancel">
            Leave it loaded
          </button>
          <button type="submit" value="unload" class="main">
            Unload
          </button>
        </div>
      </form>
    </dialog>
  );
}

interface TaskProperties {
  /** Absent: another client has started the download. */
  readonly task: ModelTask | undefined;
  readonly model: ModelState;
  readonly pull: PullState | undefined;
}

/** How far a change of the model is. */
function TaskLine({ task, model, pull }: TaskProperties): VNode {
  const { name, progress, busy = 0 } = model;
  const text = pull
    ? `Downloading: ${pullText(pull)}`
    : task?.verb === "unload"
      ? `Waiting for ${countInWords(busy, "request")} to end…`
      : task?.verb === "pull" || progress?.phase === "download"
        ? "Downloading…"
        : task?.phase === "wait" && !progress
          ? "Waiting for memory…"
          : "Loading…";
  const fraction = pull ? pull.bytes / (pull.total_bytes || Infinity) : (progress?.fraction ?? task?.fraction);
  return (
    <div class="download">
      <span class="facts">{text}</span>
      <progress {...(fraction !== undefined && { max: 1, value: fraction })} aria-label={`${name}: ${text}`} />
    </div>
  );
}

/** The maximum number of names that are shown of a server's models. */
const maxNames = 50;

function Details({ model }: { readonly model: ModelState }): VNode {
  const { models, aliases = [], fallbacks, source, load, keep, idle_unload_ms: idleMs, restarts, urls, slots } = model;
  const names =
    models.slice(0, maxNames).join(", ") + (models.length > maxNames ? ` and ${models.length - maxNames} more` : "");
  const loading = [
    load && { eager: "when the server starts", lazy: "with the first request", manual: "by hand only" }[load],
    keep === true
      ? "kept in memory"
      : idleMs !== undefined && `unloaded after ${durationText(idleMs)} without requests`,
  ].filter((text) => typeof text === "string");
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Source", source],
    ["Names for clients", names],
    ["Aliases", aliases.join(", ")],
    ["Fallbacks", fallbacks && fallbackText(fallbacks)],
    ["Loaded", loading.join(", ")],
    ["Restarts", restarts?.toString()],
  ];
  return (
    <div class="stack model-details">
      <dl class="parting">
        {facts.flatMap(([term, value = ""]) =>
          value === "" ? [] : [<dt key={term}>{term}</dt>, <dd key={`${term}:`}>{value}</dd>],
        )}
      </dl>
      {slots?.each && (
        <section class="stack" aria-label={`Slots of ${model.name}`}>
          <h3>Slots</h3>
          <ul class="slots">
            {slots.each.map((slot) => (
              <Slot key={slot.id} slot={slot} />
            ))}
          </ul>
        </section>
      )}
      {urls && <Urls name={model.name} urls={urls} />}
      {urls && <Profiles model={model} />}
    </div>
  );
}

function fallbackText({ models, reasons }: NonNullable<ModelState["fallbacks"]>): string {
  const isList = (value: typeof models): value is readonly string[] => Array.isArray(value);
  const names = isList(models)
    ? models.join(", ")
    : Object.entries(models)
        .map(([name, others]) => `${name} → ${others.join(", ")}`)
        .join("; ");
  return reasons ? `${names} (after: ${reasons.join(", ")})` : names;
}

/** What a slot does, with its part of the context as a bar: cached, processed and generated tokens. */
function Slot({ slot }: { readonly slot: SlotReport }): VNode {
  const { id, state, context_size: size, context_used: used, tokens_per_second: rate } = slot;
  const {
    prompt_tokens: prompt,
    cached_tokens: cached,
    processed_tokens: processed,
    generated_tokens: generated,
  } = slot;
  const doing = {
    idle: "idle",
    prompt: `prompt: ${numberText(processed)} of ${countInWords(prompt, "token")}${cached > 0 ? ` (${numberText(cached)} cached)` : ""}`,
    generating: `${countInWords(generated, "token")} generated after a prompt of ${numberText(prompt)}${cached > 0 ? ` (${numberText(cached)} cached)` : ""}`,
  }[state];
  const text = `Slot ${id}: ${doing}${rate === undefined ? "" : ` · ${numberText(rate)} tokens/s`}`;
  const share = (tokens: number): number => (size > 0 ? Math.min(100, (100 * tokens) / size) : 0);
  return (
    <li>
      <span class="facts">{text}</span>
      <span class="facts slot-context">
        {numberText(used)} of {numberText(size)}
      </span>
      <svg class="slot-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
        <rect class="cached" width={share(cached)} height="1" />
        <rect class="processed" x={share(cached)} width={share(Math.max(0, processed - cached))} height="1" />
        <rect class="generated" x={share(processed)} width={share(generated)} height="1" />
      </svg>
    </li>
  );
}

const urlStates = {
  ready: { text: "in service", mark: "good" },
  ejected: { text: "ejected", mark: "warning" },
  absent: { text: "does not answer", mark: "error" },
} as const;

function Urls({ name, urls }: { readonly name: string; readonly urls: NonNullable<ModelState["urls"]> }): VNode {
  return (
    <section class="stack" aria-label={`URLs of ${name}`}>
      <h3>URLs</h3>
      <ul class="slots">
        {urls.map(({ url, state, open, retries, ejections, failure }) => (
          <li key={url}>
            <span>
              <code>{url}</code> <span class={`chip ${urlStates[state].mark}`}>{urlStates[state].text}</span>
            </span>
            <span class="facts slot-context">
              {numberText(open)} open · {retries === 1 ? "1 retry" : `${numberText(retries)} retries`} ·{" "}
              {countInWords(ejections, "ejection")}
            </span>
            {failure !== undefined && <p class="refusal">{failure}</p>}
          </li>
        ))}
      </ul>
      <p class="note">
        An ejected URL receives no requests until it answers a probe. With several workers, the numbers are sums, and a
        URL counts as ejected if one worker has ejected it.
      </p>
    </section>
  );
}

/** What the servers of an upstream accept; loaded when it is opened. */
function Profiles({ model: { name } }: { readonly model: ModelState }): VNode {
  const [reports, setReports] = useState<readonly ServerProfileReport[]>([]);
  const [note, setNote] = useState("Asking the server…");
  const load = async (): Promise<void> => {
    try {
      const { models } = (await (await askAdmin("models", {})).json()) as {
        readonly models: readonly { readonly name: string; readonly profiles?: readonly ServerProfileReport[] }[];
      };
      const found = models.filter((model) => model.name === name).flatMap(({ profiles = [] }) => profiles);
      setReports(found);
      setNote(found.length === 0 ? "It has not answered a request since the server started." : "");
    } catch (error) {
      setNote(error instanceof AdminRefusal ? error.message : "The server does not answer.");
    }
  };
  return (
    <details class="stack profiles" onToggle={({ currentTarget }) => currentTarget.open && void load()}>
      <summary>What its servers accept</summary>
      <div class="stack probes">
        {note !== "" && <p class="note">{note}</p>}
        {reports.map((report) => (
          <ProfileTable key={`${report.url} ${report.model}`} report={report} />
        ))}
      </div>
    </details>
  );
}
