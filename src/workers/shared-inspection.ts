import type {
  InspectedRequest,
  InspectedRequestList,
  RequestSummary,
  SearchEnd,
  SearchResult,
} from "../inspect/inspected-request.ts";
import { joinLine, withLine } from "../server/inspect/conversation.ts";
import type { KnownConversations, RequestEntry, RequestLine } from "../server/inspect/conversation.ts";
import type { Change, EntryList, InspectedRequests, Inspector, Matches } from "../server/inspect/inspector.ts";
import type { SearchedWords } from "../server/inspect/search.ts";
import { askAll, type Peer } from "./peer.ts";

/*
 * Each worker keeps its own requests: nothing crosses processes until someone looks. Then the worker that is asked collects the requests of
 * all workers through the primary process, and finds the conversations among them.
 */

/** What a worker asks the others. */
type Question =
  | { readonly ask: "entries" | "clear" }
  | { readonly ask: "find"; readonly id: string }
  | { readonly ask: "search"; readonly words: SearchedWords; readonly ids: readonly string[] };

/** Other workers may be busy with long requests. In milliseconds. */
const timeoutMs = 2000;
/** A search reads all texts. In milliseconds. */
const searchTimeoutMs = 30_000;

/** A change of the requests of one worker. */
type EntryChange = Change<RequestEntry>;

/** In a worker: the requests of all workers. */
export class SharedInspection implements InspectedRequests {
  readonly #primary: Peer;
  readonly #own: () => Inspector | undefined;
  readonly #open = new Set<(changes: readonly EntryChange[]) => void>();
  /** Ends the reports to other workers. */
  #stopReporting: (() => void) | undefined;

  /** `own`: the requests of this worker; undefined if they are not recorded. */
  constructor(primary: Peer, own: () => Inspector | undefined) {
    this.#primary = primary;
    this.#own = own;
    primary.onRequest("inspect.own", (question) => this.#answer(question as Question));
    primary.onNotification("inspect.report", (isOn) => this.#report(isOn === true));
    primary.onNotification("inspect.changes", (changes) => this.#deliver(changes as readonly EntryChange[]));
  }

  async list(matches: Matches): Promise<InspectedRequestList> {
    const lists = await this.#lists();
    const sum = (member: "bytes" | "maxBytes" | "dropped"): number => lists.reduce((all, one) => all + one[member], 0);
    const requests = new JoinedRequests().add(lists.flatMap(({ entries }) => entries)).filter(matches);
    return { requests, bytes: sum("bytes"), max_bytes: sum("maxBytes"), dropped: sum("dropped") };
  }

  async clear(): Promise<number> {
    const own = (await this.#own()?.clear()) ?? 0;
    return (await this.#others<number>({ ask: "clear" })).reduce((sum, cleared) => sum + cleared, own);
  }

  async *search(words: SearchedWords, matches: Matches): AsyncGenerator<SearchResult | SearchEnd, void> {
    const { requests } = await this.list(matches);
    const ids = requests.map(({ id }) => id);
    const others = this.#others<readonly SearchResult[]>({ ask: "search", words, ids }, searchTimeoutMs);
    let found = 0;
    for await (const result of searched(this.#own(), words, ids)) {
      found++;
      yield result;
    }
    for (const result of (await others).flat()) {
      found++;
      yield result;
    }
    yield { searched: ids.length, found };
  }

  async *shown(matches: Matches): AsyncGenerator<InspectedRequest, void> {
    const { requests } = await this.list(matches);
    for (const { id } of requests) {
      const request = await this.find(id);
      if (request) yield request;
    }
  }

  /** With the line that the list has. */
  async find(id: string): Promise<InspectedRequest | undefined> {
    const own = await this.#own()?.find(id);
    const found =
      own ??
      (await this.#others<InspectedRequest | undefined>({ ask: "find", id })).find((request) => request !== undefined);
    if (!found) return undefined;
    const [summary] = (await this.list((one) => one.id === id)).requests;
    return { ...found, ...summary };
  }

  async *changes(): AsyncGenerator<readonly Change<RequestSummary>[], void> {
    const queue = new ChangeQueue();
    const joined = new JoinedRequests();
    const deliver = (changes: readonly EntryChange[]): void => queue.add(changes);
    const own = this.#own()?.entryChanges();
    try {
      this.#open.add(deliver);
      if (this.#open.size === 1) this.#primary.notify("inspect.listen", true);
      if (own) void forward(own, deliver);
      // The lines of later requests continue those of earlier ones.
      joined.add((await this.#lists()).flatMap(({ entries }) => entries));
      for (;;) {
        const changes = await queue.next();
        const cleared = changes.flatMap((change) => ("cleared" in change ? [change] : []));
        const entries = changes.flatMap((change) => ("cleared" in change ? [] : [change]));
        yield [...cleared, ...joined.add(entries)];
      }
    } finally {
      this.#open.delete(deliver);
      if (this.#open.size === 0) this.#primary.notify("inspect.listen", false);
      await own?.return();
    }
  }

  async #lists(): Promise<readonly EntryList[]> {
    const own = this.#own()?.entries();
    const others = await this.#others<EntryList | undefined>({ ask: "entries" });
    return [own, ...others].filter((list) => list !== undefined);
  }

  /** The answers of the other workers; of those that do not answer in time, none. */
  async #others<Answer>(question: Question, ms = timeoutMs): Promise<readonly Answer[]> {
    const answers = await this.#primary.request("inspect.others", { question, ms }).catch(() => []);
    return answers as readonly Answer[];
  }

  #answer(question: Question): unknown {
    const own = this.#own();
    switch (question.ask) {
      case "entries":
        return own?.entries();
      case "clear":
        return own?.clear() ?? 0;
      case "find":
        return own?.find(question.id);
      case "search":
        return resultsOf(searched(own, question.words, question.ids));
    }
  }

  #report(isOn: boolean): void {
    this.#stopReporting?.();
    this.#stopReporting = undefined;
    const changes = isOn ? this.#own()?.entryChanges() : undefined;
    if (!changes) return;
    this.#stopReporting = () => void changes.return();
    void forward(changes, (batch) => this.#primary.notify("inspect.changes", batch));
  }

  #deliver(changes: readonly EntryChange[]): void {
    for (const deliver of this.#open) deliver(changes);
  }
}

/** In the primary process. */
export class InspectionOfWorkers {
  readonly #workers = new Set<Peer>();
  /** The workers whose page is open. */
  readonly #listening = new Set<Peer>();

  join(worker: Peer): void {
    this.#workers.add(worker);
    worker.onRequest("inspect.others", async (body) => {
      const { question, ms } = body as { readonly question: Question; readonly ms: number };
      const others = [...this.#workers].filter((other) => other !== worker);
      return [...(await askAll(others, "inspect.own", ms, question)).values()];
    });
    worker.onNotification("inspect.listen", (isOn) => this.#listen(worker, isOn === true));
    worker.onNotification("inspect.changes", (changes) => {
      for (const other of this.#listening) if (other !== worker) other.notify("inspect.changes", changes);
    });
    if (this.#listening.size > 0) worker.notify("inspect.report", true);
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      this.#listen(worker, false);
    });
  }

  /** A worker reports its changes while another one listens. */
  #listen(worker: Peer, isOn: boolean): void {
    const before = this.#listening.size;
    if (isOn) this.#listening.add(worker);
    else this.#listening.delete(worker);
    const after = this.#listening.size;
    if ((before === 0) === (after === 0)) return;
    for (const each of this.#workers) each.notify("inspect.report", after > 0);
  }
}

/** Maximum number of requests whose lines are remembered while a page is open. */
const maxJoined = 20_000;

/** Finds the conversations of the requests of several workers, in the order of their arrival. */
class JoinedRequests {
  readonly #known: KnownConversations = { sessions: new Map(), conversations: new Map() };
  readonly #lines = new Map<string, RequestLine>();

  /** The summaries of the requests, in the order of their arrival. */
  add(entries: readonly RequestEntry[]): RequestSummary[] {
    const ordered = entries.toSorted((a, b) => a.summary.number - b.summary.number);
    return ordered.map(({ summary, facts }) => {
      let line = this.#lines.get(summary.id);
      if (!line && facts) {
        line = joinLine(summary.id, facts, this.#known);
        this.#lines.set(summary.id, line);
        if (this.#lines.size > maxJoined) this.#forget();
      }
      return line ? withLine(summary, line) : summary;
    });
  }

  #forget(): void {
    for (const map of [this.#lines, this.#known.sessions, this.#known.conversations])
      for (const key of [...map.keys()].slice(0, Math.floor(map.size / 2))) map.delete(key);
  }
}

/** Changes that wait for a page. Of a page that does not read, the oldest are dropped: it reads the list again. */
class ChangeQueue {
  #waiting: EntryChange[] = [];
  #wake: (() => void) | undefined;

  add(changes: readonly EntryChange[]): void {
    this.#waiting.push(...changes);
    if (this.#waiting.length > maxJoined) this.#waiting = this.#waiting.slice(-maxJoined);
    this.#wake?.();
  }

  async next(): Promise<readonly EntryChange[]> {
    while (this.#waiting.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#waiting.splice(0);
  }
}

async function forward(
  changes: AsyncIterable<readonly EntryChange[]>,
  deliver: (changes: readonly EntryChange[]) => void,
): Promise<void> {
  for await (const batch of changes) deliver(batch);
}

/** The results of one worker, without its end. */
async function* searched(
  inspector: Inspector | undefined,
  words: SearchedWords,
  ids: readonly string[],
): AsyncGenerator<SearchResult, void> {
  const chosen = new Set(ids);
  for await (const result of inspector?.search(words, ({ id }) => chosen.has(id)) ?? [])
    if ("id" in result) yield result;
}

async function resultsOf(results: AsyncIterable<SearchResult>): Promise<SearchResult[]> {
  const all: SearchResult[] = [];
  for await (const result of results) all.push(result);
  return all;
}
