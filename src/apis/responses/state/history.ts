import type { Shelves } from "../../port-state.ts";
import { findOn, outputOf } from "./kept-response.ts";
import type { Item, KeptResponse } from "./kept-response.ts";
import { previousNotFound } from "./previous-not-found.ts";

/**
 * Returns everything that was said up to the end of a response: the input and output of the responses before it, and its own. Rejects
 * with `FailureError` if one of them was deleted or has made way for others.
 *
 * A response names only the one before it, so a conversation takes linear space. What was assembled once is remembered in this process:
 * each further response then costs two reads, of itself and of the conversation's version. Deleting a response deletes the version, after
 * which no process uses what it remembers.
 */
export async function historyOf(kept: KeptResponse, shelves: Shelves): Promise<readonly Item[]> {
  const { previous, root } = kept;
  if (previous === undefined || root === undefined) return saidIn(kept);
  const version = await versionOf(root, shelves);
  const remembered = shelves.assembled.get(root);
  const conversation =
    remembered instanceof Conversation && remembered.version === version ? remembered : new Conversation(version);
  const links = [kept];
  let earlier: readonly Item[] | undefined;
  for (let id: string | undefined = previous; id !== undefined;) {
    earlier = conversation.upTo(id);
    if (earlier) break;
    const link = await findOn(shelves.lasting, id);
    if (!link) throw previousNotFound(kept.id);
    links.push(link);
    id = link.previous;
  }
  links.reverse();
  const said = links.map(saidIn);
  conversation.add(links, said);
  if (version !== undefined) shelves.assembled.set(root, conversation, conversation.characters);
  return [...(earlier ?? []), ...said.flat()];
}

/** Called when a response has been deleted: what processes remember of its conversation is not used any more. */
export async function forgetHistory({ lasting, assembled }: Shelves, { id, root }: KeptResponse): Promise<void> {
  assembled.delete(root ?? id);
  await lasting.delete(versionKey(root ?? id));
}

/** Returns a text that is deleted with any response of the conversation; undefined if the store takes nothing. */
async function versionOf(root: string, { lasting, assembled }: Shelves): Promise<string | undefined> {
  const known = await lasting.get(versionKey(root));
  if (known !== undefined) return known;
  // Stored before the responses are read: if one is deleted meanwhile, so is this.
  const version = assembled.unique();
  return lasting.set(versionKey(root), version).then(
    () => version,
    () => undefined,
  );
}

function versionKey(root: string): string {
  return `version ${root}`;
}

function saidIn(kept: KeptResponse): readonly Item[] {
  return [...kept.input, ...outputOf(kept)];
}

interface Link {
  readonly id: string;
  /** How much was said up to its end. */
  readonly items: number;
  readonly characters: number;
}

/** The assembled form of a conversation. If it branches: of the branch that was read last. */
class Conversation {
  readonly version: string | undefined;
  readonly #items: Item[] = [];
  readonly #links: Link[] = [];
  /** The index of a response in `#links`. */
  readonly #indexOf = new Map<string, number>();

  constructor(version: string | undefined) {
    this.version = version;
  }

  /** About how many characters it holds. */
  get characters(): number {
    return this.#links.at(-1)?.characters ?? 0;
  }

  /** undefined: the response is not in it. */
  upTo(id: string): readonly Item[] | undefined {
    const index = this.#indexOf.get(id);
    return index === undefined ? undefined : this.#items.slice(0, this.#links[index]?.items);
  }

  /** Adds responses in order, and what was said in each, after their predecessor. Replaces another branch. */
  add(responses: readonly KeptResponse[], said: readonly (readonly Item[])[]): void {
    const previous = responses[0]?.previous;
    const before = previous === undefined ? -1 : this.#indexOf.get(previous);
    // Another request has changed the branch meanwhile.
    if (before === undefined) return;
    for (const { id } of this.#links.splice(before + 1)) this.#indexOf.delete(id);
    this.#items.length = this.#links.at(-1)?.items ?? 0;
    for (const [at, response] of responses.entries()) {
      for (const item of said[at] ?? []) this.#items.push(item);
      this.#indexOf.set(response.id, this.#links.length);
      this.#links.push({
        id: response.id,
        items: this.#items.length,
        characters: this.characters + response.characters,
      });
    }
  }
}
