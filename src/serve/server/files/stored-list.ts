import type { Keyspace } from "../../../wire/apis/port-state.ts";

const weekMs = 7 * 86_400_000;

/*
 * The ids of what a client has stored, in a text for each week: an append is atomic over processes, and a text of a past week is forgotten
 * with its age. A line begins with a line end, so that a line which a crash has torn does not spoil the next one.
 */

/** Adds an id to a list. An id that begins with `-` removes the id behind it. `label`: readers can ask for ids with this label only. */
export async function addToList(space: Keyspace, name: string, id: string, label = ""): Promise<void> {
  await space.append(`${name} of week ${Math.floor(Date.now() / weekMs)}`, `\n${id} ${label}`, true);
}

/** The ids that were added within `maxAgeMs` and not removed, the newest first. */
export async function readList(space: Keyspace, name: string, maxAgeMs: number, label?: string): Promise<string[]> {
  const last = Math.floor(Date.now() / weekMs);
  const first = Math.floor((Date.now() - maxAgeMs) / weekMs);
  const weeks = Array.from({ length: Math.min(last - first, maxWeeks) + 1 }, (_, back) => last - back);
  const texts = await Promise.all(weeks.map((week) => space.get(`${name} of week ${week}`)));
  const removed = new Set<string>();
  const ids: string[] = [];
  for (const text of texts) {
    for (const line of text?.split("\n").reverse() ?? []) {
      const space = line.indexOf(" ");
      const id = line.slice(0, Math.max(0, space));
      if (id.startsWith("-")) removed.add(id.slice(1));
      else if (id !== "" && !removed.has(id) && (label === undefined || line.slice(space + 1) === label)) ids.push(id);
    }
  }
  return ids;
}

/** Two years. */
const maxWeeks = 104;
