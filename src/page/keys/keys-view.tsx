import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isObject } from "../../wire/core/json.ts";
import { adminKey, AdminRefusal, askAdmin } from "../api/call-api.ts";
import { AdminKeyForm } from "../parts/admin-key-form.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { costInWords } from "../inspect/words.ts";

/** How often what is used is asked for again, in milliseconds. */
const everyMs = 5000;

interface ShownKey {
  readonly id: string;
  readonly name: string;
  readonly source: "store" | "configuration";
  readonly owner?: string;
  readonly note?: string;
  readonly models?: readonly string[];
  readonly expires?: string;
  readonly expired?: boolean;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly tokensPerDay?: number;
  readonly concurrency?: number;
  readonly budget?: Readonly<Partial<Record<Period, number>>>;
  readonly used: Readonly<Record<Rate, number>> & { readonly budget: Readonly<Record<Period, number>> };
}

type Period = (typeof periods)[number];
type Rate = keyof typeof rates;
const periods = ["day", "month", "total"] as const;
const rates = {
  requestsPerMinute: "requests this minute",
  tokensPerMinute: "tokens this minute",
  tokensPerDay: "tokens today",
  concurrency: "requests open",
} as const;
const periodWords = { day: "today", month: "this month", total: "in all" } as const;

interface KeyList {
  readonly keys: readonly ShownKey[];
  /** Keys can be created and revoked here. */
  readonly managed: boolean;
}

/** The keys of the server's clients, and how near each is to its limits. `shown`: while this view is shown. */
export function KeysView({ shown }: { readonly shown: boolean }): VNode {
  const [list, setList] = useState<KeyList>();
  const [problem, setProblem] = useState<{ readonly text: string; readonly needsKey: boolean }>();
  const [created, setCreated] = useState("");
  const [tries, setTries] = useState(0);
  const failed = (error: unknown): void => {
    const refusal = error instanceof AdminRefusal ? error : undefined;
    setProblem({ text: refusal?.message ?? "The server does not answer.", needsKey: refusal?.status === 401 });
  };
  const load = async (signal?: AbortSignal): Promise<void> => {
    try {
      const response = await askAdmin("keys", { ...(signal && { signal }) });
      setList((await response.json()) as KeyList);
      setProblem(undefined);
    } catch (error) {
      if (signal?.aborted !== true) failed(error);
    }
  };
  useEffect(() => {
    if (!shown) return undefined;
    const leaving = new AbortController();
    void load(leaving.signal);
    const timer = setInterval(() => void load(leaving.signal), everyMs);
    return () => {
      clearInterval(timer);
      leaving.abort();
    };
  }, [shown, tries]);
  const change = async (path: string, init: RequestInit): Promise<unknown> => {
    try {
      const answer: unknown = await (await askAdmin(path, init)).json();
      await load();
      return answer;
    } catch (error) {
      failed(error);
      return undefined;
    }
  };
  const create = async (settings: object): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const answer = await change("keys", { method: "POST", headers, body: JSON.stringify(settings) });
    if (isObject(answer) && typeof answer["key"] === "string") setCreated(answer["key"]);
  };
  if (problem?.needsKey === true)
    return (
      <AdminKeyForm
        subject="The keys"
        refusal={adminKey.value === "" ? "" : problem.text}
        onDone={() => setTries(tries + 1)}
      />
    );
  return (
    <div class="judge models">
      <div class="column">
        {problem && <p class="banner wrong">{problem.text}</p>}
        {created !== "" && (
          <div class="banner stack" role="group" aria-label="The new key">
            <p>
              The key is shown this once: <code>{created}</code>
            </p>
            <div class="row">
              <CopyButton text={() => created} label="Copy the key" />
              <button type="button" class="quiet" onClick={() => setCreated("")}>
                Hide it
              </button>
            </div>
          </div>
        )}
        {list && (
          <KeyTable
            keys={list.keys}
            onRevoke={({ id, name }) => {
              if (confirm(`Revoke the key ${id} of ${name}? It cannot be used again.`))
                void change(`keys/${id}`, { method: "DELETE" });
            }}
          />
        )}
        {list?.managed === true && <NewKey onCreate={create} />}
        {list && !list.managed && (
          <p class="note">
            These keys are in the configuration. With managedKeys: true, keys are created and revoked here.
          </p>
        )}
      </div>
    </div>
  );
}

interface TableProperties {
  readonly keys: readonly ShownKey[];
  readonly onRevoke: (key: ShownKey) => void;
}

function KeyTable({ keys, onRevoke }: TableProperties): VNode {
  if (keys.length === 0) return <p class="banner">There are no keys yet.</p>;
  return (
    <div class="table-box keys" tabIndex={0} role="region" aria-label="Keys">
      <table>
        <thead>
          <tr>
            {["Key", "Used", "Models", "Expires", "Kept"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <th scope="row">
                {key.name}
                <p class="note">{[key.id, key.owner, key.note].filter((text) => text !== undefined).join(" · ")}</p>
              </th>
              <td>
                {usesOf(key).map(({ words, share }) => (
                  <p key={words}>
                    {words}
                    {share !== undefined && <meter min={0} max={1} high={0.8} value={share} aria-label={words} />}
                  </p>
                ))}
              </td>
              <td>{key.models?.join(", ") ?? "all"}</td>
              <td>
                {key.expires?.slice(0, 10) ?? "never"}
                {key.expired === true && " (expired)"}
              </td>
              <td>
                {key.source === "store" ? (
                  <button type="button" onClick={() => onRevoke(key)} aria-label={`Revoke the key ${key.id}`}>
                    Revoke
                  </button>
                ) : (
                  "in the configuration"
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What was used in words; of a limit also its share, 0 to 1. */
function usesOf(key: ShownKey): { readonly words: string; readonly share?: number }[] {
  const ofLimits = Object.entries(rates).flatMap(([name, words]) => {
    const limit = key[name as Rate];
    const used = key.used[name as Rate];
    if (limit === undefined) return [];
    const counts = `${used.toLocaleString("en")} of ${limit.toLocaleString("en")}`;
    return [{ words: `${counts} ${words}`, share: Math.min(1, used / limit) }];
  });
  const money = periods.map((period) => {
    const limit = key.budget?.[period];
    const spent = costInWords(key.used.budget[period]);
    if (limit === undefined) return { words: `${spent} ${periodWords[period]}` };
    const share = limit === 0 ? 1 : Math.min(1, key.used.budget[period] / limit);
    return { words: `${spent} of ${costInWords(limit)} ${periodWords[period]}`, share };
  });
  return [...ofLimits, ...money];
}

const fields = [
  { name: "name", title: "Name", required: true },
  { name: "owner", title: "Owner", required: false },
  { name: "models", title: "Models, separated by commas (all)", required: false },
  { name: "month", title: "Budget for a month in US dollars (none)", required: false },
  { name: "expires", title: "Expires, such as 2027-01-31 (never)", required: false },
] as const;

function NewKey({ onCreate }: { readonly onCreate: (settings: object) => Promise<void> }): VNode {
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const text = (name: string): string => (new FormData(form).get(name) as string).trim();
    const models = text("models")
      .split(",")
      .map((model) => model.trim())
      .filter((model) => model !== "");
    await onCreate({
      name: text("name"),
      ...(text("owner") !== "" && { owner: text("owner") }),
      ...(models.length > 0 && { models }),
      ...(text("month") !== "" && { budget: { month: Number(text("month")) } }),
      ...(text("expires") !== "" && { expires: text("expires") }),
    });
    form.reset();
  };
  return (
    <form class="stack" aria-label="A new key" onSubmit={(event) => void submit(event as unknown as SubmitEvent)}>
      <h2>A new key</h2>
      {fields.map(({ name, title, required }) => (
        <label key={name} class="field">
          <span>{title}</span>
          <input name={name} type="text" autocomplete="off" required={required} />
        </label>
      ))}
      <div class="row end">
        <button type="submit" class="main">
          Create
        </button>
      </div>
    </form>
  );
}
