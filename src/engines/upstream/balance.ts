import { Digest } from "../../wire/core/digest.ts";

/*
 * Chooses among the URLs of an upstream by the beginning of the prompt: rendezvous hashing with bounded loads. Nothing is stored, so
 * several processes agree without a connection. Routers that mirror the caches of their servers in a tree (SGLang's `cache_aware`) find
 * longer common beginnings, but need all requests in one process. Sources: Thaler and Ravishankar, "A Name-Based Mapping Scheme for
 * Rendezvous"; Mirrokni et al., "Consistent Hashing with Bounded Loads"; SMG's `prefix_hash` with its load factor of 1.25.
 */

/** How much more than the average of all URLs one URL may have to do. */
const loadFactor = 1.25;
/** A URL with fewer outstanding requests is never passed over: servers generate several answers in parallel, llama.cpp four by default. */
const minLoad = 4;

/** A URL as it is chosen. */
export interface LoadedUrl {
  readonly url: string;
  readonly outstanding: number;
}

/**
 * Returns the URL of a conversation: the one with the highest hash of both, unless it has too much to do; then the next one by hash. A
 * URL that is added or removed moves only its own conversations. `urls` must not be empty.
 */
export function urlOfConversation<Url extends LoadedUrl>(urls: readonly Url[], key: string): Url {
  const total = urls.reduce((sum, { outstanding }) => sum + outstanding, 0);
  const maxLoad = Math.max(minLoad, Math.ceil((loadFactor * (total + 1)) / urls.length));
  const ranked = urls.map((target) => ({ target, rank: new Digest().add(key).add(target.url).value }));
  let chosen: (typeof ranked)[number] | undefined;
  for (const candidate of ranked) {
    if (candidate.target.outstanding >= maxLoad) continue;
    if (!chosen || candidate.rank > chosen.rank) chosen = candidate;
  }
  // The average is below the maximum, so a URL with less exists.
  if (!chosen) throw new Error("An upstream has no URL.");
  return chosen.target;
}
