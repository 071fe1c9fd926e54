import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";

/** The listed requests of one session or conversation, the newest first. */
export interface RequestThread {
  readonly id: string;
  readonly requests: readonly RequestSummary[];
}

/** What a request is in its thread; "turn": of the main conversation. */
export type ThreadPart = "turn" | "sub-agent" | "title" | "token count" | "side request";

/** The sums and facts of a thread. Times are in Unix time, in milliseconds. */
export interface ThreadTotals {
  readonly client: string | undefined;
  /** The first text of the user. */
  readonly topic: string;
  readonly turns: number;
  readonly sideRequests: number;
  readonly promptTokens: number;
  /** Of requests whose source says so. */
  readonly cachedTokens: number | undefined;
  readonly completionTokens: number;
  /** Failed or refused. */
  readonly failures: number;
  readonly open: number;
  readonly cacheMisses: number;
  readonly repairs: number;
  readonly start: number;
  readonly end: number;
}

/** A row of the list: a request, or a thread above its requests. */
export type ListRow =
  | { readonly kind: "thread"; readonly thread: RequestThread; readonly isOpen: boolean }
  | { readonly kind: "request"; readonly request: RequestSummary; readonly part?: ThreadPart };

/** Begins the id of a row of a thread, which is chosen as a request is. */
export const threadMark = "session:";

/** The threads of requests, each at the place of the newest of them. */
export function threadsOf(newestFirst: readonly RequestSummary[]): RequestThread[] {
  const threads = new Map<string, RequestSummary[]>();
  for (const request of newestFirst) {
    const { id, thread = id } = request;
    const others = threads.get(thread);
    if (others) others.push(request);
    else threads.set(thread, [request]);
  }
  return [...threads].map(([id, requests]) => ({ id, requests }));
}

/** The rows of a list. A thread of one request is that request. */
export function rowsOf(threads: readonly RequestThread[], isOpen: (id: string) => boolean): ListRow[] {
  return threads.flatMap((thread): ListRow[] => {
    const [only, ...others] = thread.requests;
    if (only && others.length === 0) return [{ kind: "request", request: only }];
    const open = isOpen(thread.id);
    const row: ListRow = { kind: "thread", thread, isOpen: open };
    if (!open) return [row];
    const partOf = partsOf(thread);
    return [row, ...thread.requests.map((request): ListRow => ({ kind: "request", request, part: partOf(request) }))];
  });
}

/** The id under which a row is chosen. */
export function idOfRow(row: ListRow): string {
  return row.kind === "thread" ? threadMark + row.thread.id : row.request.id;
}

/** Finds what each request is in its thread. The main conversation is the one with the most requests; of several, the oldest. */
export function partsOf({ requests }: RequestThread): (request: RequestSummary) => ThreadPart {
  const counts = new Map<string, number>();
  for (const { conversation, purpose } of requests.toReversed())
    if (conversation !== undefined && purpose === undefined)
      counts.set(conversation, (counts.get(conversation) ?? 0) + 1);
  const most = Math.max(...counts.values());
  const [main] = [...counts].find(([, count]) => count === most) ?? [];
  return ({ conversation, purpose, path }) => {
    if (purpose !== undefined) return purpose;
    if (conversation === undefined) return isTokenCount(path) ? "token count" : "side request";
    return conversation === main ? "turn" : "side request";
  };
}

function isTokenCount(path: string): boolean {
  return /\/(?:count_tokens|input_tokens|tokenize)\/?$/.test(path);
}

export function isFailure({ outcome }: RequestSummary): boolean {
  return outcome === "failed" || outcome === "refused";
}

/** Whether much of the prompt was processed again although an earlier request began in the same way. */
export function hasMissedCache({ cache_miss: miss }: RequestSummary): boolean {
  return miss !== undefined && miss.cause !== "nothing-known";
}

/** The kinds of repairs that every answer of a server needs, by the name of its engine. */
export type ConstantRepairs = ReadonlyMap<string, ReadonlySet<string>>;

/** The number of answers after which "every" is worth a word. */
const minAnswers = 3;

/** Finds the repairs that all listed answers of a server needed: they say something of the server, and nothing of one of its answers. */
export function constantRepairs(requests: readonly RequestSummary[]): ConstantRepairs {
  const counts = new Map<string, number>();
  const common = new Map<string, Set<string>>();
  for (const { engine, outcome, repairs = {} } of requests) {
    if (engine === undefined || outcome !== "finished") continue;
    counts.set(engine, (counts.get(engine) ?? 0) + 1);
    const kinds = common.get(engine);
    if (!kinds) common.set(engine, new Set(Object.keys(repairs)));
    else for (const kind of kinds) if (!Object.hasOwn(repairs, kind)) kinds.delete(kind);
  }
  return new Map([...common].filter(([engine, kinds]) => kinds.size > 0 && (counts.get(engine) ?? 0) >= minAnswers));
}

/** The number of repairs of an answer, without those that every answer of its server needs. */
export function repairsIn({ engine = "", repairs = {} }: RequestSummary, constant?: ConstantRepairs): number {
  const known = constant?.get(engine);
  return Object.entries(repairs).reduce((sum, [kind, count]) => (known?.has(kind) ? sum : sum + count), 0);
}

export function totalsOf(thread: RequestThread, constant?: ConstantRepairs): ThreadTotals {
  const { requests } = thread;
  const partOf = partsOf(thread);
  const turns = requests.filter((request) => partOf(request) === "turn");
  const first = turns.at(-1) ?? requests.at(-1);
  const sum = (count: (request: RequestSummary) => number | undefined): number =>
    requests.reduce((total, request) => total + (count(request) ?? 0), 0);
  const number = (is: (request: RequestSummary) => boolean): number => requests.filter(is).length;
  return {
    client: requests.find(({ client }) => client !== undefined)?.client,
    topic: first?.topic ?? first?.snippet ?? first?.error ?? "",
    turns: turns.length,
    sideRequests: requests.length - turns.length,
    promptTokens: sum(({ prompt_tokens: tokens }) => tokens),
    cachedTokens: requests.some(({ cached_tokens: tokens }) => tokens !== undefined)
      ? sum(({ cached_tokens: tokens }) => tokens)
      : undefined,
    completionTokens: sum(({ completion_tokens: tokens }) => tokens),
    failures: number(isFailure),
    open: number(({ outcome }) => outcome === "open"),
    cacheMisses: number(hasMissedCache),
    repairs: sum((request) => repairsIn(request, constant)),
    start: Math.min(...requests.map(({ at }) => at)),
    end: Math.max(...requests.map(({ at, ms }) => at + ms)),
  };
}
