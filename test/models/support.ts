import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stateAfter } from "../../src/judge/inspect/model-states.ts";
import type { ModelState, ModelStates, ModelStatesEvent } from "../../src/judge/inspect/model-states.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire, StartOptions } from "../support/serve.ts";

export interface TestServer extends RunningTruewire {
  readonly folder: string;
  /** Writes the configuration anew: entries of models as YAML flows, and the server's settings. */
  configure(models: readonly string[], settings?: readonly string[]): void;
  /** Stops it and deletes its folder. */
  end(): Promise<void>;
}

/** Members of a model's entry that make it small, about 160 MiB, and let an answer be long, though it repeats itself. */
export const small = 'threads: 1, gpu: "off", contextSize: 60000, slots: 2, loopGuard: "off"';

/** Serves models of a folder that holds a.gguf, b.gguf and c.gguf, programmed models that say the same. */
export async function serveModels(
  models: readonly string[],
  settings: readonly string[] = [],
  options: StartOptions = {},
): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-models-"));
  for (const name of ["a", "b", "c"]) writeProgrammedModel(join(folder, `${name}.gguf`));
  const file = join(folder, "truewire.yaml");
  const configure = (entries: readonly string[], more: readonly string[] = settings): void =>
    writeFileSync(file, ["port: 0", ...more, "models:", ...entries.map((entry) => `  - ${entry}`), ""].join("\n"));
  configure(models);
  try {
    const server = await startTruewire(["--config", file], options);
    return {
      ...server,
      folder,
      configure,
      async end() {
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

export function ask(
  url: string,
  model: string,
  script: string,
  more: Readonly<Record<string, unknown>> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: `#${script}` }], ...more }),
    ...(signal && { signal }),
  });
}

/** The text of a stream, and how it ended. */
export function told(stream: string): {
  readonly text: string;
  readonly finish: string | undefined;
  readonly last: string;
} {
  const events = stream.split("\n\n").filter((event) => event.startsWith("data: "));
  let text = "";
  let finish: string | undefined;
  for (const event of events) {
    if (event === "data: [DONE]") continue;
    const { choices } = JSON.parse(event.slice(6)) as {
      choices?: { delta: { content?: string }; finish_reason: string | null }[];
    };
    text += choices?.[0]?.delta.content ?? "";
    finish = choices?.[0]?.finish_reason ?? finish;
  }
  return { text, finish, last: events.at(-1) ?? "" };
}

export interface ErrorBody {
  readonly error: { readonly message: string; readonly type: string; readonly code: string | null };
}

/** The events of an admin task. */
export async function taskEvents(response: Response): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const text = await response.text();
  return text
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => JSON.parse(event.slice(6)) as Record<string, unknown>);
}

export function admin(url: string, path: string, model?: string): Promise<Response> {
  return fetch(`${url}/admin/${path}`, {
    method: path === "models" ? "GET" : "POST",
    headers: { "content-type": "application/json" },
    ...(model !== undefined && { body: JSON.stringify({ model }) }),
  });
}

/** A client of `GET /admin/models/live`. */
export interface StatesClient {
  /** By name, as of the last event. */
  model(name: string): ModelState | undefined;
  readonly states: () => ModelStates | undefined;
  readonly events: readonly ModelStatesEvent[];
  /** Whether the server has ended the stream. */
  readonly ended: () => boolean;
  close(): void;
}

/** Resolves when the snapshot has arrived. */
export async function watchStates(url: string, headers: Readonly<Record<string, string>> = {}): Promise<StatesClient> {
  const controller = new AbortController();
  const response = await fetch(`${url}/admin/models/live`, { headers, signal: controller.signal });
  if (response.status !== 200 || !response.body) throw new Error(`${response.status} ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const events: ModelStatesEvent[] = [];
  let states: ModelStates | undefined;
  let ended = false;
  let text = "";
  /** Resolves to false when the server has ended the stream. */
  const read = async (): Promise<boolean> => {
    const { value = "", done } = await reader.read();
    ended = done;
    const parts = (text += value).split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts.filter((each) => each.startsWith("data: "))) {
      const event = JSON.parse(part.slice(6)) as ModelStatesEvent;
      events.push(event);
      states = stateAfter(states, event);
    }
    return !done;
  };
  const hasSnapshot = (): boolean => states !== undefined;
  while (!hasSnapshot() && (await read()));
  void (async () => {
    while (await read());
  })().catch(() => {});
  return {
    model: (name) => states?.models.find((model) => model.name === name),
    states: () => states,
    events,
    ended: () => ended,
    close: () => controller.abort(),
  };
}
