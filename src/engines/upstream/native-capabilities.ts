import { isObject } from "../../core/json.ts";
import type { ListedModel } from "../../apis/models/read-models.ts";
import { readModelList } from "../../apis/models/read-models.ts";
import type { Target } from "./target.ts";

/** A server that is asked for more than the list of its models is asked while somebody waits for the list. */
const patienceMs = 3000;
/** Of Ollama's models, so many are asked for. */
const mostAsked = 100;
const longestAnswer = 1024 * 1024;

/**
 * What models can do, where the OpenAI list of their server does not say, and its own API does: LM Studio's list (`type`: "vlm" or
 * "llm"), and what Ollama shows of each model (`capabilities`). Servers are known by the owner that their lists name. Each model is asked
 * for once.
 */
export class NativeCapabilities {
  readonly #sees = new Map<string, boolean>();
  readonly #reasoning = new Set<string>();
  readonly #asked = new Set<string>();

  /** Whether a model takes images; undefined: not known. */
  sees(id: string): boolean | undefined {
    return this.#sees.get(id);
  }

  /** Whether a model is known to reason. */
  reasons(id: string): boolean {
    return this.#reasoning.has(id);
  }

  /** Never rejects: without an answer, it stays unknown. */
  async learn(
    models: readonly ListedModel[],
    target: Target,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const unknown = models.filter(({ id, sees }) => sees === null && !this.#asked.has(id));
    for (const { id } of unknown) this.#asked.add(id);
    const signal = AbortSignal.timeout(patienceMs);
    const ask = (path: string, body?: object): Promise<string> => answerTo(target, headers, path, body, signal);
    try {
      if (unknown.some(({ ownedBy }) => ownedBy === "organization_owner")) {
        for (const { id, sees } of readModelList(await ask("/api/v0/models")) ?? [])
          if (sees !== null) this.#sees.set(id, sees);
      }
      for (const { id, ownedBy } of unknown.slice(0, mostAsked)) {
        if (ownedBy !== "library") continue;
        const { capabilities } = parsed(await ask("/api/show", { model: id }));
        if (!Array.isArray(capabilities)) continue;
        this.#sees.set(id, capabilities.includes("vision"));
        if (capabilities.includes("thinking")) this.#reasoning.add(id);
      }
    } catch {
      // An older version, or another server of these names.
    }
  }
}

async function answerTo(
  target: Target,
  headers: Readonly<Record<string, string>>,
  path: string,
  body: object | undefined,
  signal: AbortSignal,
): Promise<string> {
  const answer = await target.transport.request({
    method: body === undefined ? "GET" : "POST",
    path: target.rootPath(path),
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal,
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of answer.body) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > longestAnswer) throw new Error("the answer has no end");
  }
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
  return text;
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : {};
}
