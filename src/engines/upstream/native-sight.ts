import { isObject } from "../../generation/json.ts";
import type { ListedModel } from "../../wire/models/read-models.ts";
import { readModelList } from "../../wire/models/read-models.ts";
import type { Target } from "./target.ts";

/** A server that is asked for more than the list of its models is asked while somebody waits for the list. */
const patienceMs = 3000;
/** Of Ollama's models, so many are asked for. */
const mostAsked = 100;
const longestAnswer = 1024 * 1024;

/**
 * Whether models take images, where the OpenAI list of their server does not tell, and its own API does: LM Studio's list (`type`: "vlm" or
 * "llm"), and what Ollama shows of each model (`capabilities`). Servers are known by whom they name as owner. Each model is asked for once.
 */
export class NativeSight {
  readonly #sees = new Map<string, boolean>();
  readonly #asked = new Set<string>();

  /** undefined: not known. */
  of(id: string): boolean | undefined {
    return this.#sees.get(id);
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
        if (Array.isArray(capabilities)) this.#sees.set(id, capabilities.includes("vision"));
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
