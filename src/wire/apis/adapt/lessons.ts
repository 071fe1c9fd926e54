import type { ServerProfile } from "./server-profile.ts";

/** Members of a profile whose list is what servers refuse: each entry is a lesson of its own. */
const refusedLists = ["drop", "dropInMessages", "refusedKeywords"] as const;

/** One thing that was learned about a server. */
export interface Lesson {
  /** The member of the profile, for a list with the entry: `tools`, `drop.stop`. */
  readonly id: string;
  readonly value: unknown;
}

/** The lessons in a learned profile. */
export function lessonsIn(profile: ServerProfile): Lesson[] {
  return Object.entries(profile).flatMap(([name, value]): Lesson[] =>
    isRefusedList(name) && Array.isArray(value)
      ? value.map((entry) => ({ id: `${name}.${entry}`, value: entry }))
      : [{ id: name, value }],
  );
}

/** The profile without one lesson. */
export function withoutLesson(profile: ServerProfile, id: string): ServerProfile {
  return Object.fromEntries(
    Object.entries(profile).flatMap(([name, value]): [string, unknown][] => {
      if (!isRefusedList(name) || !Array.isArray(value)) return name === id ? [] : [[name, value]];
      const left = value.filter((entry) => `${name}.${entry}` !== id);
      return left.length === 0 ? [] : [[name, left]];
    }),
  );
}

function isRefusedList(name: string): boolean {
  return (refusedLists as readonly string[]).includes(name);
}

/**
 * Merges profiles: later ones win, and what any of them lists as refused is refused. Results with the same members in the same order have the same
 * hidden class, so V8 keeps the code that it has optimized for a profile when a refusal has taught nothing.
 */
export function mergedProfile(...profiles: readonly ServerProfile[]): ServerProfile {
  const merged: { -readonly [Name in keyof ServerProfile]: ServerProfile[Name] } = Object.assign({}, ...profiles);
  for (const name of refusedLists) {
    const all = new Set(profiles.flatMap((profile) => profile[name] ?? []));
    if (all.size > 0) merged[name] = [...all];
  }
  return merged;
}
