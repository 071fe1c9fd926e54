import type { GenerationEvent } from "../../wire/core/events.ts";
import { isObject } from "../../wire/core/json.ts";
import { askGateway, curlOf, type Gateway, type GatewayAnswer } from "./ask-gateway.ts";
import { answerFactsOf } from "./answer-facts.ts";
import { type AnswerPart, answerOf, type Api, apis, type Fact, factIn, type Json, markerOf } from "./facts.ts";
import { confirmed, samplesOf, withSeverities } from "./confirm.ts";
import { type FactFinding, type FactResult, type Finding, joinFindings, keyOf } from "./finding.ts";
import { judgeAnswer, judgeRequest, type Observed, wholeAnswer } from "./judge-fact.ts";
import { judgeCache, type Prices, usageOf } from "./prompt-cache.ts";
import { type CaptureFile, recordedFactsOf } from "./recorded-facts.ts";
import { sessionFactsOf } from "./session-facts.ts";
import { requestFactsOf } from "./request-facts.ts";
import { startVendor, type VendorRequest } from "./vendor.ts";

export interface BetweenOptions extends Gateway {
  /** The API by which the gateway asks its vendor. */
  readonly vendor: Api;
  /** Where the vendor listens, as the gateway is configured. 0: any free port, which `onVendor` gets. */
  readonly vendorPort: number;
  readonly onVendor?: (url: string) => void;
  readonly vendorHost?: string;
  /** The names by which the gateway may ask the vendor for the model; default: the model's. */
  readonly vendorModels?: readonly string[];
  readonly prices?: Prices;
  /** Members of every request that does not have them. */
  readonly members?: Json;
  /** Only the facts that most gateways lose. */
  readonly quick?: boolean;
  /** Only facts whose ids begin so. */
  readonly only?: readonly string[];
  /** Recorded sessions, in place of the facts. */
  readonly sessions?: readonly CaptureFile[];
  /** Of the sessions that are generated; default: 1, and 2 if the run is not quick. */
  readonly seeds?: readonly number[];
  /** How many other requests of its facts are to show each error and warning again; default 0. */
  readonly confirm?: number;
  /** Requests at the same time; default 8. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, all: number, fact: Fact) => void;
}

export interface BetweenRun {
  readonly client: Api;
  readonly vendor: Api;
  readonly results: readonly FactResult[];
  readonly findings: readonly Finding[];
  /** Milliseconds from a request's arrival at the vendor to the first byte at the client: the median of the sessions' answers, or of all. */
  readonly answerMs: number | undefined;
}

const defaultPrices: Prices = { input: 3, cached: 0.3 };

/** How long it waits for a gateway that asks the vendor nothing after an error, in milliseconds; LiteLLM's default is 5 seconds. */
const pauseMs = 6000;

/** How long a gateway may take to close the connection to the vendor when its client has left, in milliseconds. */
const cancelMs = 5000;

/**
 * Puts a client before a gateway and an exact vendor after it, sends requests that each contain one fact, and looks for it on the other
 * side, in both directions. Rejects with the system's error if the vendor cannot listen.
 */
export async function runBetween(options: BetweenOptions): Promise<BetweenRun> {
  const { client, vendor: api, model, vendorPort, vendorHost, vendorModels = [model], confirm = 0 } = options;
  const { prices = defaultPrices, concurrency = 8 } = options;
  const facts = chosen(options);
  const byId = new Map(facts.map((fact) => [fact.id, fact]));
  const [plain] = requestFactsOf(client, model) as [Fact];
  const base = { ...plain, body: { ...options.members, ...plain.body } };
  const received = new Map<string, VendorRequest[]>();
  const waiting = new Map<string, () => void>();
  // A gateway to OpenAI may ask by chat for one client, and by Responses for another.
  const vendor = await startVendor({
    apis: [api, ...apis.filter((one) => one !== api)],
    models: vendorModels,
    isKeyless: api === "ollama",
    port: vendorPort,
    ...(vendorHost !== undefined && { host: vendorHost }),
    onRequest(request) {
      if (request.counts) return;
      const id = factIn(request.text) ?? "";
      received.set(id, [...(received.get(id) ?? []), request]);
      waiting.get(id)?.();
    },
    answer({ api: asked, text, body, request }, { total, read }) {
      const id = factIn(text) ?? "unknown";
      // Only sessions are to have cached prompts.
      const cached = byId.get(id)?.continues === undefined ? 0 : read;
      const usage = usageOf({ total, read: cached, written: { hour: 0, short: 0 } }, 7);
      const planned = byId.get(id)?.answer;
      if (!planned?.batches)
        return planned ?? { batches: inChoices(answerOf(standardParts(id), { usage }), request?.n ?? 1) };
      return asked === "messages" && !thinks(body)
        ? { ...planned, batches: withoutReasoning(planned.batches) }
        : planned;
    },
  });
  options.onVendor?.(vendor.url);
  const observed = new Map<string, Observed>();
  /** undefined: there is no answer to give back. */
  const withAnswer = (fact: Fact): Fact | undefined => {
    const { fact: before, answer } = observed.get(fact.continues ?? "") ?? {};
    const text = before && answer && wholeAnswer(client, before, answer);
    const body = text === undefined ? undefined : fact.withAnswer?.(text, before?.body ?? {});
    return body && { ...fact, body };
  };
  const observe = async (planned: Fact): Promise<void> => {
    const fact = planned.withAnswer ? withAnswer(planned) : planned;
    if (!fact) return;
    const leave = new AbortController();
    if (fact.client === "leaves") waiting.set(fact.id, () => leave.abort());
    const signal = options.signal ? AbortSignal.any([options.signal, leave.signal]) : leave.signal;
    let answer: GatewayAnswer | undefined;
    let failure: string | undefined;
    try {
      answer = await askGateway(options, fact, signal);
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
    if (fact.client === "leaves") await untilLeft(() => received.get(fact.id) ?? []);
    const why = failure === undefined ? {} : { failure };
    observed.set(fact.id, { fact, client, vendor: api, base, received: received.get(fact.id) ?? [], answer, ...why });
    options.onProgress?.(observed.size, Math.max(observed.size, byId.size), fact);
  };
  const observeAll = async (all: readonly Fact[]): Promise<void> => {
    const isFailure = ({ answer }: Fact): boolean => answer?.failure !== undefined || answer?.cutAfter !== undefined;
    const others = all.filter((fact) => !isFailure(fact));
    const begun = others.filter(({ continues, answer }) => continues === undefined && (answer?.gapMs ?? 0) === 0);
    const sessions = begun.map((first) => sessionOf(first, others));
    // One after the other: each request of a session needs the one before it, and their times are those of the gateway alone.
    for (const session of sessions) if (session.length > 1) for (const fact of session) await observe(fact);
    await inParallel(
      sessions.flatMap((session) => (session.length === 1 ? session : [])),
      concurrency,
      observe,
    );
    for (const fact of others) if ((fact.answer?.gapMs ?? 0) > 0) await observe(fact);
    // Last: a gateway may send nothing to a vendor for a while that has failed, and may ask a few times with pauses.
    const failures = all.filter(isFailure);
    const isMissing = ({ id }: Fact): boolean => received.size > 0 && (received.get(id) ?? []).length === 0;
    await inParallel(failures, concurrency, observe);
    for (const fact of failures)
      for (let again = 0; isMissing(fact) && again < 2; again++) {
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        await observe(fact);
      }
  };
  const wasGiven = (value: string, { continues = "" }: Fact): boolean => {
    const before = observed.get(continues);
    return (
      before !== undefined && (before.received.some(({ sent }) => sent.includes(value)) || wasGiven(value, before.fact))
    );
  };
  const judge = ({ fact, ...sides }: Observed): FactFinding[] => {
    const returns = fact.returns?.filter(({ value }) => wasGiven(value, fact));
    const one = { ...sides, fact: { ...fact, ...(returns && { returns }) } };
    const before = observed.get(fact.continues ?? "");
    const sent = before && { api: client, earlier: before.fact.body, later: one.fact.body };
    return [
      ...judgeRequest(one),
      ...judgeAnswer(one),
      ...judgeCancel(one),
      ...(sent ? judgeCache(before.received[0], one.received[0], prices, sent) : []),
    ];
  };
  try {
    await observeAll(facts);
    // In the order of the facts: a finding is shown by the request with one fact, before those of sessions.
    const first = facts.flatMap(({ id }) => observed.get(id) ?? []);
    const results = first.map((one) => ({ fact: one.fact, findings: judge(one) }));
    const found = results.flatMap(({ fact, findings }) =>
      findings.map((finding) => ({ fact, curl: curlOf(options, fact), finding })),
    );
    const joined = joinFindings(found);
    const samples = samplesOf(joined, received.size === 0 ? 0 : confirm, byId);
    for (const fact of samples.facts) byId.set(fact.id, fact);
    await observeAll(samples.facts);
    const isSeen = (id: string, key: string): boolean => {
      const again = observed.get(id);
      return again !== undefined && judge(again).some((finding) => keyOf(finding) === key);
    };
    const findings = joined.map((finding) => confirmed(finding, samples.of(finding), isSeen));
    return { client, vendor: api, results: withSeverities(results, findings), findings, answerMs: medianDelay(first) };
  } finally {
    await vendor.close();
  }
}

/** The fact, and those that continue it. */
function sessionOf(first: Fact, facts: readonly Fact[]): Fact[] {
  const session = [first];
  const ids = new Set([first.id]);
  for (const fact of facts)
    if (fact.continues !== undefined && ids.has(fact.continues)) {
      ids.add(fact.id);
      session.push(fact);
    }
  return session;
}

function chosen({
  client,
  vendor,
  model,
  quick = false,
  only,
  members,
  sessions,
  seeds = quick ? [1] : [1, 2],
}: BetweenOptions): Fact[] {
  const planned = sessions
    ? recordedFactsOf(client, model, sessions)
    : [
        ...requestFactsOf(client, model),
        ...seeds.flatMap((seed) => sessionFactsOf(client, vendor, model, seed)),
        ...answerFactsOf(client, vendor, model),
      ];
  const all = planned.map((fact) => ({ ...fact, body: { ...members, ...fact.body } }));
  const needed = new Set(
    all.flatMap(({ id, continues }) => (continues !== undefined && isChosen(id, only) ? [continues] : [])),
  );
  return all.filter(({ id, isQuick }) => needed.has(id) || (isChosen(id, only) && (!quick || isQuick === true)));
}

function isChosen(id: string, only: readonly string[] | undefined): boolean {
  return only === undefined || only.some((beginning) => id.startsWith(beginning));
}

function standardParts(id: string): AnswerPart[] {
  return [{ text: `${markerOf(id)} A short answer.` }];
}

/** Claude thinks only where the request asks for it. */
function thinks(body: Json | undefined): boolean {
  const thinking = body?.["thinking"];
  return isObject(thinking) && thinking["type"] !== "disabled";
}

function withoutReasoning(batches: Iterable<readonly GenerationEvent[]>): GenerationEvent[][] {
  let isReasoning = false;
  return [...batches].map((batch) =>
    batch.filter((event) => {
      const was = isReasoning;
      if (event.type === "part-start") isReasoning = event.kind === "reasoning";
      if (event.type === "part-end") isReasoning = false;
      return !was && !isReasoning;
    }),
  );
}

/** The same answer for each of `n` choices. */
function inChoices(batches: readonly (readonly GenerationEvent[])[], n: number): GenerationEvent[][] {
  const choices = Array.from({ length: n }, (_, choice) => choice);
  const copies = (event: GenerationEvent): readonly GenerationEvent[] =>
    "choice" in event ? choices.map((choice): GenerationEvent => Object.assign({ ...event }, { choice })) : [event];
  return batches.map((batch) => batch.flatMap(copies));
}

function judgeCancel({ fact, received }: Observed): FactFinding[] {
  if (fact.client !== "leaves" || received.length === 0 || received.some(({ wasLeft }) => wasLeft)) return [];
  const message = `The client has left, and the gateway still reads the vendor's answer after ${cancelMs / 1000} seconds: the vendor goes on and charges for it.`;
  return [
    {
      side: "transport",
      kind: "not-cancelled",
      severity: "warning",
      path: fact.stream ? "stream" : "body",
      message,
      clientSide: "",
      vendorSide: "",
    },
  ];
}

async function untilLeft(requests: () => readonly VendorRequest[]): Promise<void> {
  const until = performance.now() + cancelMs;
  while (!requests().some(({ wasLeft }) => wasLeft) && performance.now() < until)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

async function inParallel<T>(items: readonly T[], count: number, run: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: count }, worker));
}

function medianDelay(all: readonly Observed[]): number | undefined {
  const session = all.filter(({ fact }) => fact.continues !== undefined);
  const delays = (session.length > 0 ? session : all)
    .flatMap(({ received, answer }) => (received[0] && answer?.status === 200 ? [answer.firstAt - received[0].at] : []))
    .toSorted((one, other) => one - other);
  return delays[Math.floor(delays.length / 2)];
}
