import { Counter } from "prom-client";
import type { Registry } from "prom-client";
import type { MeasuredAnswer, ObservedApi } from "../request-facts.ts";
import type { RequestOutcome, RequestRecord } from "../request-record.ts";

/** The metrics of requests with one API, model and key. */
interface Series {
  readonly labels: Labels;
  /** By outcome and error type. */
  readonly durations: Map<string, HistogramSeries>;
  readonly firstToken: HistogramSeries;
  readonly perToken: HistogramSeries;
  readonly input: HistogramSeries;
  readonly output: HistogramSeries;
  readonly queue: HistogramSeries;
  cachedTokens: number;
  /** In nanodollars; undefined: the model has no price. */
  cost: number | undefined;
}

type Labels = Readonly<
  Record<"gen_ai_operation_name" | "gen_ai_provider_name" | "gen_ai_request_model" | "api" | "key", string>
>;

/**
 * The numbers of requests that generate. Those of OpenTelemetry have its names as its Prometheus exporters write them: dots become
 * underscores, the unit is appended. Source: OpenTelemetry specification, "Prometheus and OpenMetrics Compatibility".
 *
 * No label has a value that a client made up: models are those that are listed, keys those that are configured.
 */
export class RequestNumbers {
  readonly #duration = new Histogram(
    "gen_ai_server_request_duration_seconds",
    "Time from a request's arrival to the end of its answer.",
    durationBuckets,
  );
  readonly #firstToken = new Histogram(
    "gen_ai_server_time_to_first_token_seconds",
    "Time from a request's arrival to the first token of its answer, if the answer was generated as a stream.",
    firstTokenBuckets,
  );
  readonly #perToken = new Histogram(
    "gen_ai_server_time_per_output_token_seconds",
    "Time for each token after the first, if the answer was generated as a stream.",
    perTokenBuckets,
  );
  readonly #tokens = new Histogram(
    "gen_ai_client_token_usage",
    "Tokens of a request's prompt (input) and answer (output).",
    tokenBuckets,
  );
  readonly #queue = new Histogram(
    "truewire_queue_duration_seconds",
    "How long a request waited for a slot of a local model.",
    durationBuckets,
  );
  readonly #cached;
  readonly #cost;
  readonly #repaired;
  /** By API, model and key. */
  readonly #series = new Map<ObservedApi, Map<string, Map<string, Series>>>();
  readonly #missed;
  /** By model and cause. */
  readonly #misses = new Map<string, Map<string, number>>();
  /** By model and kind. */
  readonly #repairs = new Map<string, Map<string, number>>();
  readonly #stated;
  /** By model and what became of the states. */
  readonly #states = new Map<string, Map<string, number>>();
  readonly #fellBack;
  /** By model and reason. */
  readonly #fallbacks = new Map<string, Map<string, number>>();
  readonly #looped;
  readonly #resumed;

  constructor(registry: Registry) {
    this.#cached = new Counter({
      name: "truewire_cached_input_tokens_total",
      help: "Prompt tokens that were read from a cache.",
      labelNames: ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "api", "key"],
      registers: [registry],
    });
    this.#cost = new Counter({
      name: "truewire_cost_total",
      help: "What requests cost by the configured prices, in US dollars.",
      labelNames: ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "api", "key"],
      registers: [registry],
    });
    this.#missed = new Counter({
      name: "truewire_cache_misses_total",
      help: "Requests whose prompt a local model read again although much of it might have been in its cache, by cause.",
      labelNames: ["gen_ai_request_model", "cause"],
      registers: [registry],
    });
    this.#repaired = new Counter({
      name: "truewire_repairs_total",
      help: "What was repaired in the answers of other servers, or adapted in requests to them, by kind.",
      labelNames: ["gen_ai_request_model", "repair"],
      registers: [registry],
    });
    this.#stated = new Counter({
      name: "truewire_turn_states_total",
      help: "What became of the states of earlier turns in requests to other servers.",
      labelNames: ["gen_ai_request_model", "fate"],
      registers: [registry],
    });
    this.#fellBack = new Counter({
      name: "truewire_fallbacks_total",
      help: "Fallbacks that were asked in place of a failed model, by that model and the kind of its failure.",
      labelNames: ["gen_ai_request_model", "reason"],
      registers: [registry],
    });
    this.#looped = new Counter({
      name: "truewire_loops_total",
      help: "Answers that were ended because they repeated the same text over and over.",
      labelNames: ["gen_ai_request_model"],
      registers: [registry],
    });
    this.#resumed = new Counter({
      name: "truewire_resumed_streams_total",
      help: "How often a client resumed a stream after it had lost the connection.",
      registers: [registry],
    });
  }

  observe(record: RequestRecord, outcome: RequestOutcome): void {
    const { asked, sent, answer } = record;
    if (sent.resumesStream === true) this.#resumed.inc();
    const { api, served, keyName = "" } = asked;
    const servedModel = served?.info.id ?? "";
    const { usage, timings, repairs } = answer;
    if (!api || sent.detached === true) return;
    const series = this.#of(api, servedModel, keyName);
    this.#durationOf(series, outcome, record.errorType(outcome)).observe((performance.now() - asked.receivedAt) / 1000);
    if (timings) series.queue.observe(timings.queuedMs / 1000);
    if (usage) {
      series.input.observe(usage.promptTokens);
      series.output.observe(usage.completionTokens);
      series.cachedTokens += answer.cachedTokens ?? 0;
    }
    const { cost } = record;
    if (cost !== undefined) series.cost = (series.cost ?? 0) + cost;
    if (answer.cacheMiss)
      addAll(
        new Map([[answer.cacheMiss.cause, 1]]),
        within(this.#misses, servedModel, () => new Map<string, number>()),
      );
    if (answer.turnStateCounts)
      addAll(
        new Map(Object.entries(answer.turnStateCounts)),
        within(this.#states, servedModel, () => new Map<string, number>()),
      );
    for (const reason of answer.fallbackReasons)
      addAll(
        new Map([[reason, 1]]),
        within(this.#fallbacks, servedModel, () => new Map<string, number>()),
      );
    if (answer.looped) this.#looped.inc({ gen_ai_request_model: servedModel });
    if (outcome === "finished") observePace(series, answer);
    if (repairs.size > 0)
      addAll(
        repairs,
        within(this.#repairs, servedModel, () => new Map<string, number>()),
      );
  }

  /** The histograms; the counters, which are prom-client's, are brought up to date. */
  text(): string {
    this.#cached.reset();
    this.#cost.reset();
    for (const models of this.#series.values())
      for (const keys of models.values())
        for (const { labels, cachedTokens, cost } of keys.values()) {
          this.#cached.inc(labels, cachedTokens);
          if (cost !== undefined) this.#cost.inc(labels, cost / 1e9);
        }
    this.#missed.reset();
    for (const [model, causes] of this.#misses)
      for (const [cause, count] of causes) this.#missed.inc({ gen_ai_request_model: model, cause }, count);
    this.#repaired.reset();
    for (const [model, kinds] of this.#repairs)
      for (const [repair, count] of kinds) this.#repaired.inc({ gen_ai_request_model: model, repair }, count);
    this.#stated.reset();
    for (const [model, fates] of this.#states)
      for (const [fate, count] of fates)
        if (count > 0) this.#stated.inc({ gen_ai_request_model: model, fate: fateLabels[fate] ?? fate }, count);
    this.#fellBack.reset();
    for (const [model, reasons] of this.#fallbacks)
      for (const [reason, count] of reasons) this.#fellBack.inc({ gen_ai_request_model: model, reason }, count);
    const all = [this.#duration, this.#firstToken, this.#perToken, this.#tokens, this.#queue];
    return all.map((histogram) => histogram.text()).join("\n");
  }

  #of(api: ObservedApi, model: string, key: string): Series {
    const models = within(this.#series, api, () => new Map<string, Map<string, Series>>());
    const keys = within(models, model, () => new Map<string, Series>());
    return within(keys, key, () => this.#newSeries(api, model, key));
  }

  #newSeries({ name, operation }: ObservedApi, model: string, key: string): Series {
    const labels: Labels = {
      gen_ai_operation_name: operation,
      gen_ai_provider_name: "truewire",
      gen_ai_request_model: model,
      api: name,
      key,
    };
    return {
      labels,
      durations: new Map(),
      firstToken: this.#firstToken.series(labels),
      perToken: this.#perToken.series(labels),
      input: this.#tokens.series({ ...labels, gen_ai_token_type: "input" }),
      output: this.#tokens.series({ ...labels, gen_ai_token_type: "output" }),
      queue: this.#queue.series(labels),
      cachedTokens: 0,
      cost: undefined,
    };
  }

  #durationOf({ labels, durations }: Series, outcome: RequestOutcome, errorType: string | undefined): HistogramSeries {
    return within(durations, errorType === undefined ? outcome : `${outcome} ${errorType}`, () =>
      this.#duration.series({ ...labels, outcome, error_type: errorType ?? "" }),
    );
  }
}

/** The label of a name that is two words in code. */
const fateLabels: Readonly<Record<string, string>> = { standIns: "stand_in" };

function observePace(series: Series, { firstMs, lastMs, usage }: Readonly<MeasuredAnswer>): void {
  if (firstMs === undefined || lastMs === undefined) return;
  series.firstToken.observe(firstMs / 1000);
  const further = (usage?.completionTokens ?? 0) - 1;
  if (further > 0) series.perToken.observe((lastMs - firstMs) / 1000 / further);
}

function addAll(counts: ReadonlyMap<string, number>, to: Map<string, number>): void {
  for (const [name, count] of counts) to.set(name, (to.get(name) ?? 0) + count);
}

function within<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/**
 * The bounds of histograms' buckets, as OpenTelemetry's semantic conventions for generative AI recommend them. Source:
 * opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics, "ExplicitBucketBoundaries" of each metric.
 */

/** `gen_ai.server.request.duration`, in seconds. */
export const durationBuckets: number[] = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/** `gen_ai.server.time_to_first_token`, in seconds. */
export const firstTokenBuckets: number[] = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

/** `gen_ai.server.time_per_output_token`, in seconds. */
export const perTokenBuckets: number[] = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

/** `gen_ai.client.token.usage`, in tokens. */
export const tokenBuckets: number[] = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];

/**
 * A histogram whose observations cost no more than a search among its bounds: prom-client's check and hash their labels every time, which
 * for the five of a request took a tenth of what answering it takes. Its text is Prometheus' exposition format, version 0.0.4.
 */
export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series: HistogramSeries[] = [];

  /** `bounds`: of the buckets, ascending. */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
  }

  /** A new series, for observations with these labels; those that are "" are left out. Called once for each set of labels. */
  series(labels: Readonly<Record<string, string>>): HistogramSeries {
    const series = new HistogramSeries(this.#bounds, labelText(labels));
    this.#series.push(series);
    return series;
  }

  text(): string {
    const lines = [`# HELP ${this.#name} ${this.#help}`, `# TYPE ${this.#name} histogram`];
    for (const series of this.#series) lines.push(...series.lines(this.#name));
    return lines.join("\n") + "\n";
  }
}

export class HistogramSeries {
  readonly #bounds: readonly number[];
  readonly #labels: string;
  /** Observations in each bucket, and beyond the last bound. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[], labels: string) {
    this.#bounds = bounds;
    this.#labels = labels;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** None before the first observation. */
  lines(name: string): string[] {
    const total = this.#counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return [];
    const before = this.#labels === "" ? "" : `${this.#labels},`;
    let below = 0;
    const buckets = this.#bounds.map((bound, at) => {
      below += this.#counts[at] ?? 0;
      return `${name}_bucket{${before}le="${bound}"} ${below}`;
    });
    return [
      ...buckets,
      `${name}_bucket{${before}le="+Inf"} ${total}`,
      `${name}_sum{${this.#labels}} ${this.#sum}`,
      `${name}_count{${this.#labels}} ${total}`,
    ];
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",");
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
