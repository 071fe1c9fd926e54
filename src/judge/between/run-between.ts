import type { GenerationEvent } from "../../wire/core/events.ts";
import { askGateway, curlOf, type Gateway, type GatewayAnswer } from "./ask-gateway.ts";
import { answerFactsOf } from "./answer-facts.ts";
import { type AnswerPart, answerOf, type Api, apis, type Fact, factIn, type Json, markerOf } from "./facts.ts";
import { type FactFinding, type Finding, joinFindings } from "./finding.ts";
import { judgeAnswer, judgeRequest, type Observed } from "./judge-fact.ts";
import { judgeCache, type Prices, usageOf } from "./prompt-cache.ts";
import { type CaptureFile, recordedFactsOf } from "./recorded-facts.ts";
import { requestFactsOf } from "./request-facts.ts";
import { returnedBody, sessionFactsOf } from "./session-facts.ts";
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
  /** Requests at the same time; default 4. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, all: number, fact: Fact) => void;
}

/** One row of the matrix: a fact, and the worst that has happened to it. */
export interface FactResult {
  readonly fact: Pick<Fact, "id" | "title" | "side">;
  readonly findings: readonly FactFinding[];
}

export interface BetweenRun {
  readonly client: Api;
  readonly vendor: Api;
  readonly results: readonly FactResult[];
  readonly findings: readonly Finding[];
  /** Milliseconds from a request's arrival at the vendor to the first byte at the client: the median of all answers without a pause. */
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
  const {
    client,
    vendor: api,
    model,
    vendorPort,
    vendorHost,
    vendorModels = [model],
    prices = defaultPrices,
  } = options;
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
    port: vendorPort,
    ...(vendorHost !== undefined && { host: vendorHost }),
    onRequest(request) {
      if (request.counts) return;
      const id = factIn(request.text) ?? "";
      received.set(id, [...(received.get(id) ?? []), request]);
      waiting.get(id)?.();
    },
    answer({ text, request }, { total, read }) {
      const id = factIn(text) ?? "unknown";
      // Only sessions are to have cached prompts.
      const cached = byId.get(id)?.continues === undefined ? 0 : read;
      const usage = usageOf({ total, read: cached, written: { hour: 0, short: 0 } }, 7);
      return byId.get(id)?.answer ?? { batches: inChoices(answerOf(standardParts(id), { usage }), request?.n ?? 1) };
    },
  });
  options.onVendor?.(vendor.url);
  const observed = new Map<string, Observed>();
  let done = 0;
  /** undefined: there is no answer to give back. */
  const withAnswer = (fact: Fact): Fact | undefined => {
    const text = observed.get(fact.continues ?? "")?.answer?.text;
    const body = text === undefined ? undefined : returnedBody(client, fact, text);
    return body && { ...fact, body };
  };
  const observe = async (planned: Fact): Promise<void> => {
    const fact = planned.returns === undefined ? planned : withAnswer(planned);
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
    options.onProgress?.(Math.min(++done, facts.length), facts.length, fact);
  };
  try {
    const isFailure = ({ answer }: Fact): boolean => answer?.failure !== undefined || answer?.cutAfter !== undefined;
    const others = facts.filter((fact) => !isFailure(fact));
    await inParallel(
      others.filter(({ continues }) => continues === undefined),
      options.concurrency ?? 4,
      observe,
    );
    for (const fact of others) if (fact.continues !== undefined) await observe(fact);
    // Last, and one after the other: a gateway may send nothing to a vendor for a while that has failed.
    for (const fact of facts.filter(isFailure)) {
      await observe(fact);
      for (let again = 0; received.size > 0 && again < 2 && (received.get(fact.id) ?? []).length === 0; again++) {
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        await observe(fact);
      }
    }
  } finally {
    await vendor.close();
  }
  const clientSide = ({ fact, received: [later] }: Observed): Parameters<typeof judgeCache>[3] => {
    const before = observed.get(fact.continues ?? "")?.fact.body;
    return later?.api === client && before ? { earlier: before, later: fact.body } : undefined;
  };
  const results: FactResult[] = [];
  const found: Parameters<typeof joinFindings>[0][number][] = [];
  for (const one of observed.values()) {
    const { fact } = one;
    const earlier = fact.continues === undefined ? undefined : observed.get(fact.continues)?.received[0];
    const findings = [
      ...judgeRequest(one),
      ...judgeAnswer(one),
      ...judgeCancel(one),
      ...(fact.continues === undefined || fact.returns !== undefined
        ? []
        : judgeCache(earlier, one.received[0], prices, clientSide(one))),
    ];
    results.push({ fact, findings });
    for (const finding of findings) found.push({ fact, curl: curlOf(options, fact), finding });
  }
  return { client, vendor: api, results, findings: joinFindings(found), answerMs: medianDelay([...observed.values()]) };
}

function chosen({ client, vendor, model, quick = false, only, members, sessions }: BetweenOptions): Fact[] {
  const planned = sessions
    ? recordedFactsOf(client, model, sessions)
    : [...requestFactsOf(client, model), ...sessionFactsOf(client, model), ...answerFactsOf(client, vendor, model)];
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
  const delays = all
    .flatMap(({ received, answer }) => (received[0] && answer?.status === 200 ? [answer.firstAt - received[0].at] : []))
    .toSorted((one, other) => one - other);
  return delays[Math.floor(delays.length / 2)];
}
