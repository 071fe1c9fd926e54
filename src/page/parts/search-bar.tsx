import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Matches are counted up to this number. */
const maxMatches = 10_000;

interface Properties<Place> {
  /** What is searched: the name of the bar to screen readers. */
  readonly label: string;
  readonly field: string;
  /** Finds the places of a text that is not "". Yields undefined where the page should do other things. Changes with what is searched. */
  readonly find: (query: string) => Iterable<Place | undefined>;
  readonly onFound: (place: Place) => void;
}

/** A search that finds places. Enter goes to the next match, Shift+Enter to the previous one. */
export function SearchBar<Place>({ label, field, find, onFound }: Properties<Place>): VNode {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<readonly Place[]>([]);
  const [at, setAt] = useState(-1);
  const [isDone, setDone] = useState(true);
  useEffect(() => {
    setAt(-1);
    setFound([]);
    if (query === "") return;
    const leaving = new AbortController();
    void search(find(query), leaving.signal, (places, done) => {
      setFound(places);
      setDone(done);
    });
    return () => leaving.abort();
  }, [find, query]);
  const go = (step: number): void => {
    if (found.length === 0) return;
    const next = (Math.max(at, step < 0 ? 0 : -1) + step + found.length) % found.length;
    setAt(next);
    const place = found[next];
    if (place !== undefined) onFound(place);
  };
  const count = `${found.length.toLocaleString("en")}${found.length >= maxMatches ? "+" : ""}`;
  return (
    <div class="row search-bar" role="search" aria-label={label}>
      <input
        type="search"
        aria-label={field}
        placeholder={field}
        value={query}
        onInput={({ currentTarget }) => setQuery(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          go(event.shiftKey ? -1 : 1);
        }}
      />
      <button type="button" class="quiet" disabled={found.length === 0} onClick={() => go(-1)}>
        Previous
      </button>
      <button type="button" class="quiet" disabled={found.length === 0} onClick={() => go(1)}>
        Next
      </button>
      <span class="note" role="status">
        {query === "" ? "" : !isDone && found.length === 0 ? "Searching…" : `${at < 0 ? "" : `${at + 1} of `}${count}`}
        {query !== "" && isDone && found.length === 0 && " matches"}
      </span>
    </div>
  );
}

/** Reports the matches as they are found, and lets the page do other things between. */
async function search<Place>(
  places: Iterable<Place | undefined>,
  signal: AbortSignal,
  report: (places: readonly Place[], done: boolean) => void,
): Promise<void> {
  const found: Place[] = [];
  for (const place of places) {
    if (place !== undefined) found.push(place);
    if (found.length >= maxMatches) break;
    if (place !== undefined) continue;
    report([...found], false);
    await new Promise((resolve) => setTimeout(resolve));
    if (signal.aborted) return;
  }
  report(found, true);
}
