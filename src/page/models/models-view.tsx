import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ModelState, ModelStates } from "../../judge/inspect/model-states.ts";
import { AdminKeyForm } from "../parts/admin-key-form.tsx";
import { useChanges } from "../parts/changing.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Field } from "../parts/field.tsx";
import { ModelRow } from "./model-row.tsx";
import { ServedModels } from "./served-models.ts";
import { bytesText, configurationOf, numberText, pullText, repositoryName } from "./words.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** The models of the server: what each does now, and how to load, unload, keep and download them. `shown`: while this view is shown. */
export function ModelsView({ shown }: { readonly shown: boolean }): VNode {
  const models = useMemo(() => new ServedModels(), []);
  const [tries, setTries] = useState(0);
  useChanges(models);
  useEffect(() => (shown ? models.watch() : undefined), [shown, tries]);
  const { access, states, message } = models;
  if (access === "key-needed" || access === "key-refused")
    return (
      <AdminKeyForm
        subject="The models"
        refusal={access === "key-refused" ? message : ""}
        onDone={() => setTries(tries + 1)}
      />
    );
  if (!states) {
    return (
      <div class="column">
        <p class="banner">{message === "" ? "Asking the server…" : message}</p>
      </div>
    );
  }
  return (
    <div class="judge models">
      <div class="column">
        {message !== "" && (
          <p class="banner wrong">
            {message} What is shown may be out of date; the page keeps trying to connect to the server again.
          </p>
        )}
        <MemoryLine states={states} />
        {states.models.length === 0 ? (
          <p class="banner">The server has no models yet.</p>
        ) : (
          <section aria-label="Models">
            <div class="model-heads" aria-hidden="true">
              {["Model", "State", "Memory", "Context", "Requests", "Queue", ""].map((head) => (
                <span key={head}>{head}</span>
              ))}
            </div>
            <ul class="model-list">
              {states.models.map((model, at) => (
                <ModelRow key={`${at} ${model.name}`} model={model} models={models} />
              ))}
            </ul>
          </section>
        )}
        <Downloads models={models} states={states} />
        <HowToAdd models={models} isOpen={states.models.length === 0} />
      </div>
    </div>
  );
}

/** The memory of the loaded models, of the budget if there is one. */
function MemoryLine({ states: { memory, models } }: { readonly states: ModelStates }): VNode {
  const { used, limit } = memory;
  const isLocal = ({ kind }: ModelState): boolean => kind === "local";
  const loaded = models.filter((model) => isLocal(model) && model.state === "ready").length;
  const slots = models.flatMap(({ slots: own }) => own?.each ?? []);
  const rate = slots.reduce((sum, slot) => sum + (slot.state === "generating" ? (slot.tokens_per_second ?? 0) : 0), 0);
  const facts = [
    ...(models.some(isLocal)
      ? [
          `Memory: ${bytesText(used)}${limit === null ? ", no limit" : ` of ${bytesText(limit)}`} (estimated)`,
          `${loaded} of ${countInWords(models.filter(isLocal).length, "local model")} loaded`,
        ]
      : [countInWords(models.length, "model")]),
    ...(rate > 0 ? [`${numberText(rate)} tokens/s`] : []),
  ];
  return (
    <section class="stack" aria-label="Memory">
      <p class="facts total">{facts.join(" · ")}</p>
      {limit !== null && limit > 0 && (
        <meter min={0} max={limit} value={Math.min(used, limit)} aria-label="Memory used of the budget" />
      )}
    </section>
  );
}

interface DownloadsProperties {
  readonly models: ServedModels;
  readonly states: ModelStates;
}

/** Downloads in progress, those that this page has finished, and the form that starts one. */
function Downloads({ models, states }: DownloadsProperties): VNode {
  const [text, setText] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    const repository = repositoryName(text);
    void models.pull(states.models.find(({ source }) => source === repository)?.name ?? repository);
  };
  // The row of a served model shows its own download.
  const isServed = (model: string): boolean =>
    states.models.some(({ name, source }) => name === model || source === model);
  const own = [...models.tasks.values()].filter(({ verb, model }) => verb === "pull" && !isServed(model));
  const others = states.pulls.filter(({ model }) => !isServed(model) && !models.tasks.has(model));
  const problems = [...models.problems].filter(
    ([name]) => name !== "" && !states.models.some((model) => model.name === name),
  );
  return (
    <section class="stack" aria-label="Downloads">
      <form class="pull-form" onSubmit={submit}>
        <Field
          label="Download a model from Hugging Face"
          note="A repository of GGUF files with an optional quantization, or its address. A download that is interrupted continues where it ended."
        >
          {(ids) => (
            <input
              {...ids}
              type="text"
              required
              autocomplete="off"
              spellcheck={false}
              placeholder="hf:owner/repository:Q4_K_M"
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          )}
        </Field>
        <button type="submit">Download</button>
      </form>
      {problems.map(([name, problem]) => (
        <p key={name} class="banner wrong">
          {name}: {problem}
        </p>
      ))}
      {own.map(({ model, cancel }) => (
        <Download
          key={model}
          model={model}
          pull={states.pulls.find((pull) => pull.model === model)}
          onCancel={cancel}
        />
      ))}
      {others.map((pull) => (
        <Download key={pull.model} model={pull.model} pull={pull} />
      ))}
      {[...models.pulled].map(([model, path]) => (
        <div key={model} class="banner stack" role="group" aria-label={`Downloaded: ${model}`}>
          <p>
            <strong>{model}</strong> is downloaded: <code>{path}</code>
          </p>
          {!isServed(model) && <Snippet models={models} text={configurationOf(model)} />}
          <div class="row end">
            <button type="button" class="quiet" onClick={() => models.forget(model)}>
              Dismiss
            </button>
          </div>
        </div>
      ))}
    </section>
  );
}

interface DownloadProperties {
  readonly model: string;
  /** Absent until the hub has answered. */
  readonly pull: ModelStates["pulls"][number] | undefined;
  /** Absent: another client, or a request for the model, has started it. */
  readonly onCancel?: () => void;
}

function Download({ model, pull, onCancel }: DownloadProperties): VNode {
  const { bytes = 0, total_bytes: total = 0 } = pull ?? {};
  return (
    <div class="download" role="group" aria-label={`Download of ${model}`}>
      <strong>{model}</strong>
      <progress {...(total > 0 && { max: total, value: bytes })} aria-label={`Download of ${model}`} />
      <span class="facts">
        {pull ? pullText(pull) : "Asking the hub…"}
        {!onCancel && " · started by another client or by a request"}
      </span>
      {onCancel && (
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      )}
    </div>
  );
}

const command = "truewire serve model.gguf http://127.0.0.1:11434/v1 ./program.ts --load lazy --memory 12GiB";

const configuration = `memory: 12GiB
models:
  - { kind: local, path: model.gguf, load: lazy }
  - { kind: upstream, url: "http://127.0.0.1:11434/v1" }
  - { kind: program, program: ./program.ts }
`;

/** How a model is added: on the command line, or in the configuration. */
function HowToAdd({ models, isOpen }: { readonly models: ServedModels; readonly isOpen: boolean }): VNode {
  return (
    <details class="stack profiles" open={isOpen}>
      <summary>How to add a model</summary>
      <div class="stack">
        <p class="note">
          Name files, servers and programs when you start the server. A model with <code>--load lazy</code> is loaded by
          its first request.
        </p>
        <div class="snippet">
          <pre>{command}</pre>
          <CopyButton text={() => command} label="Copy the command" />
        </div>
        <p class="note">
          Or list them in <code>truewire.yaml</code>:
        </p>
        <Snippet models={models} text={configuration} />
      </div>
    </details>
  );
}

/** Lines for the configuration, and the button that reads it again. */
function Snippet({ models, text }: { readonly models: ServedModels; readonly text: string }): VNode {
  const problem = models.problems.get("");
  return (
    <div class="snippet">
      <pre>{text}</pre>
      <CopyButton text={() => text} label="Copy the configuration" />
      <button type="button" class="quiet" onClick={() => void models.reload()}>
        Read the configuration again
      </button>
      {problem !== undefined && <p class="banner wrong">{problem}</p>}
    </div>
  );
}
