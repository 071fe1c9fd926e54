import { mergedProfile } from "../../wire/apis/adapt/lessons.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import type { ListedModel } from "../../wire/apis/models/models.ts";
import { type Judged, judgedResult, judgementOf } from "../../judge/check/probe/judged.ts";
import { type Probe, type ProbeResult } from "../../judge/check/probe/probe.ts";
import { isRefusalOfProbe, profileProbes } from "../../judge/check/probe/profile-probes.ts";
import { probes } from "../../judge/check/probe/probes.ts";
import { RefusedSettings } from "../../judge/check/probe/refused-settings.ts";
import { absentApis } from "../../judge/check/probe/run-check.ts";
import { type ProbeTarget, send } from "../../judge/check/probe/send.ts";
import { concerns } from "../../judge/check/report/report.ts";
import { reportOf } from "../../judge/check/report/report-of.ts";
import { isObject } from "../../wire/core/json.ts";
import { getProbe, listModels } from "./doctor-models.ts";
import { shellWord } from "./systemd-unit.ts";
import type { DoctorFinding, DoctorReport, ServerQuestion } from "./doctor-report.ts";
import { knownProfile, lessonOf } from "./doctor-profile.ts";
import { answerOf, formatOfCall, parsedOrNothing, type ProbeAnswer } from "./doctor-answer.ts";
import {
  type Cures,
  knownServers,
  type KnownServer,
  serverListing,
  type ServerFacts,
  truewireServer,
} from "./known-servers.ts";

/** Agents send instructions and tools of more than ten thousand tokens. */
const minContext = 16_384;
/** The largest context that is filled to see whether prompts are cut, in tokens: more takes too long. */
const maxFilled = 16_384;
/** Words of the prompt that is sent twice. */
const repeatedWords = 300;

/** Examines a server by a few small requests. Never rejects for what the server does. */
export async function examineServer(question: ServerQuestion): Promise<DoctorReport> {
  const limit = AbortSignal.timeout(question.budget);
  const signal = question.signal ? AbortSignal.any([limit, question.signal]) : limit;
  const deadline = performance.now() + question.budget;
  const seconds = `${question.budget / 1000} s`;
  const base = question.url.replace(/\/+$/, "");
  const { onStep } = question;
  onStep?.("its list of models");
  const listed = await listModels({ ...question, url: base }, signal);
  if ("findings" in listed) return { subject: base, examined: false, findings: listed.findings };
  const { url, models, headers } = listed;
  const entry = models.find(({ id }) => id === question.model) ?? models[0];
  const model = question.model ?? entry?.id;
  const target: ProbeTarget = {
    url,
    model: model ?? "",
    ...(question.key !== undefined && { key: question.key }),
    timeout: question.budget,
    refused: new RefusedSettings(),
  };
  const server = new ServerUnderExamination(target, { signal, entry, headers, deadline });
  await server.recognize();
  const findings = [server.found()];
  if (model === undefined) {
    const cure = server.cures.model ?? "name one with --model";
    findings.push({ id: "model", status: "problem", text: "it lists no model", cure });
    return { subject: url, examined: true, findings };
  }
  // Short answers first: a slow server spends the time on what comes last.
  for (const [id, about, examine] of [
    ["answer", "a short answer", () => server.answers()],
    ["context", "the context size", () => server.context()],
    ["system", "a system message in the middle", () => server.systemMessage()],
    ["apis", "the APIs", () => server.apis()],
    ["usage", "usage in a stream", () => server.usage()],
    ["cache", "the cache", () => server.cache()],
    ["tools", "tools", () => server.tools()],
    ["schema", "a JSON schema", () => server.schema()],
    ["cut", "a prompt that does not fit", () => server.cut()],
    ["accepts", "what else it refuses", () => server.accepts()],
  ] as const) {
    try {
      if (server.hasFailed && id !== "context") continue;
      onStep?.(about);
      findings.push({ id, ...(await examine()) });
    } catch (error) {
      if (error instanceof ServerStopped) {
        findings.push(stopped(error));
        return { subject: url, model, examined: true, findings };
      }
      if (!(error instanceof NotReached)) throw error;
      const longer = `--timeout ${Math.ceil((question.budget / 1000) * 6)}`;
      // Many servers load a model at its first request.
      const cure =
        id === "answer" ? `run it again when the model is loaded, or with ${longer}` : `run it with ${longer}`;
      const isFirst = !findings.some(({ text }) => text.includes(notReached));
      findings.push({ id, status: "unknown", text: `${about}: ${notReached} ${seconds}`, ...(isFirst && { cure }) });
    }
  }
  onStep?.("the rules of truewire check");
  findings.push(...(await server.worst()));
  const { profile } = server;
  return { subject: url, model, examined: true, findings, ...(Object.keys(profile).length > 0 && { profile }) };
}

const notReached = "not reached within";

/** The time was over before an answer was complete. */
class NotReached extends Error {}

/** The server accepted a connection before a request, and refuses connections after it. */
class ServerStopped extends Error {
  /** `request`: in a few words. */
  constructor(request: string) {
    super(`the server stopped after this request: ${request}`);
  }
}

function stopped({ message }: ServerStopped): DoctorFinding {
  return {
    id: "stopped",
    status: "problem",
    text: message,
    cure: "look at the server's log for the error, and start it again",
  };
}

type Found = Omit<DoctorFinding, "id">;

class ServerUnderExamination {
  readonly #target: ProbeTarget;
  readonly #signal: AbortSignal;
  readonly #entry: ListedModel | undefined;
  /** A gateway in front of it, by the headers of its answers. */
  readonly #front: KnownServer | undefined;
  readonly #judged: Judged[] = [];
  #known: KnownServer | undefined;
  #facts: ServerFacts = {};
  /** What its own API has answered, by path. */
  #asked: Record<string, ProbeResult> = {};
  /** Its list of models names another server, whose own API is not there: what is in front of it. */
  #gateway: string | undefined;
  #contextSize: number | undefined;
  /** Tokens of one word of the prompts of `words`. */
  #tokensPerWord: number | undefined;
  /** When the time is over, as `performance.now()`. */
  readonly #deadline: number;
  #refusesTools = false;
  /** What its refusals have shown that Truewire does not know of it. */
  profile: ServerProfile = {};
  /** It does not answer a plain request. */
  hasFailed = false;

  constructor(
    target: ProbeTarget,
    {
      signal,
      entry,
      headers,
      deadline,
    }: {
      readonly signal: AbortSignal;
      readonly entry: ListedModel | undefined;
      readonly headers: Readonly<Record<string, string>>;
      readonly deadline: number;
    },
  ) {
    this.#deadline = deadline;
    this.#target = target;
    this.#signal = signal;
    this.#entry = entry;
    this.#front = knownServers.find(
      ({ header }) => header !== undefined && Object.keys(headers).some((name) => name.startsWith(header)),
    );
  }

  get cures(): Cures {
    return this.#known?.cures ?? {};
  }

  /** A Truewire in front of this server cures what Truewire adapts and repairs. */
  get #serve(): string {
    if (this.#isTruewire) return "update Truewire";
    // Without a list of models, `serve` needs the name of one.
    const named = this.#entry || this.#target.model === "" ? "" : ` --model ${shellWord(this.#target.model)}`;
    return `truewire serve ${this.#target.url}${named}`;
  }

  get #isTruewire(): boolean {
    return this.#known === truewireServer || this.#gateway === "Truewire";
  }

  /** By the owner in its list of models, else by what its own API says. */
  async recognize(): Promise<void> {
    this.#known = this.#entry && serverListing(this.#target.url, this.#entry);
    // First: it has Ollama's API, too, and passes owners on.
    if (await this.#ownFacts(truewireServer)) {
      if (this.#known && this.#known !== truewireServer) this.#gateway = "Truewire";
      this.#known ??= truewireServer;
      return;
    }
    for (const one of this.#known ? [this.#known] : knownServers.filter(({ name }) => ownApis.has(name))) {
      const facts = await this.#ownFacts(one);
      if (!this.#known && !facts) continue;
      this.#known = one;
      this.#facts = facts ?? {};
      if (!facts && one.about.length > 0 && !this.#signal.aborted)
        this.#gateway = "a gateway: its own API is not there";
      return;
    }
  }

  found(): DoctorFinding {
    const { url } = this.#target;
    const name = this.#known?.name ?? `a server that is not known by name (${new URL(url).host})`;
    const version = this.#facts.version === undefined ? "" : ` ${this.#facts.version}`;
    const through = this.#front?.name ?? this.#gateway;
    const gateway = through === undefined ? "" : ` through ${through}`;
    const { tested } = this.#front ?? (through === undefined ? (this.#known ?? {}) : {});
    const met =
      tested === undefined ? "" : `; tested: ${this.#front ? `${through} ` : ""}${tested} (docs/compatibility.md)`;
    return { id: "server", status: "ok", text: `${name}${version} answers at ${url}${gateway}${met}` };
  }

  async answers(): Promise<Found> {
    const { refusal, milliseconds } = await this.#ask(probeNamed("text"));
    if (refusal === undefined)
      return { status: "ok", text: `a short answer took ${(milliseconds / 1000).toFixed(1)} s` };
    this.hasFailed = true;
    const cure = "name another model with --model, or look at the server's log";
    return { status: "problem", text: `it does not answer a short question: ${refusal}`, cure };
  }

  /** Asked after an answer, when the model is loaded. */
  async context(): Promise<Found> {
    this.#asked = {};
    if (this.#known && this.#gateway === undefined)
      this.#facts = { ...this.#facts, ...(await this.#ownFacts(this.#known)) };
    const size = this.#facts.contextSize ?? this.#entry?.contextLength ?? undefined;
    this.#contextSize = size;
    const { context: cure } = this.cures;
    if (size === undefined)
      return {
        status: "unknown",
        text: "it does not say how large its context is",
        ...(cure !== undefined && { cure }),
      };
    const text = `its context is ${inTokens(size)}`;
    if (size >= minContext) return { status: "ok", text };
    return {
      status: "problem",
      text: `${text}: too few for agents, whose instructions and tools take more than 10,000`,
      // Ollama and llama-server have no more than the model was trained for, and vLLM does not start: with 0.17.4 and 0.32.0.
      cure: `${cure ?? "start the server with a larger context"} (a model that was trained for fewer tokens stays too small)`,
    };
  }

  async tools(): Promise<Found> {
    const { refusal, text, called, ended } = await this.#ask(withLimit(probeNamed("tools/stream"), 256));
    const reading = `${this.#serve} --tool-format ${formatOfCall(text)}`;
    const cure = this.cures.tools ?? reading;
    this.#refusesTools = refusal !== undefined;
    if (refusal !== undefined) return { status: "problem", text: `it refuses tools: ${refusal}`, cure };
    if (called) return { status: "ok", text: "it calls tools" };
    if (/get_weather/.test(text)) {
      const both = this.cures.tools === undefined ? cure : `${cure}; or ${reading}`;
      return { status: "problem", text: "the model's call of a tool stays in the text", cure: both };
    }
    const why = ended === "length" ? "the answer was too long" : "the model called none";
    return { status: "unknown", text: `it accepts tools; whether calls work was not seen: ${why}` };
  }

  async systemMessage(): Promise<Found> {
    const { refusal } = await this.#ask(
      chatProbe("system-in-the-middle", "a system message in the middle", {
        messages: [
          { role: "user", content: "Say hello." },
          { role: "assistant", content: "Hello!" },
          { role: "system", content: "Be brief." },
          { role: "user", content: "Say goodbye." },
        ],
        max_tokens: 8,
      }),
    );
    if (refusal === undefined) return { status: "ok", text: "it takes a system message in the middle" };
    return {
      status: "problem",
      text: `it refuses a system message in the middle, which agents send: ${refusal}`,
      cure: this.#serve,
    };
  }

  async usage(): Promise<Found> {
    const { refusal, promptTokens } = await this.#ask(probeNamed("usage/stream"));
    if (refusal === undefined && promptTokens !== undefined)
      return { status: "ok", text: "streams report their usage" };
    const text = refusal === undefined ? "streams report no usage" : `it refuses stream_options: ${refusal}`;
    return { status: "problem", text, cure: this.#serve };
  }

  async schema(): Promise<Found> {
    const { refusal, text, ended } = await this.#ask(probeNamed("json-schema"));
    if (refusal !== undefined)
      return { status: "problem", text: `it refuses a JSON schema: ${refusal}`, cure: "use another model or server" };
    const person = parsedOrNothing(text);
    if (isObject(person) && typeof person["name"] === "string" && typeof person["age"] === "number")
      return { status: "ok", text: "answers follow a JSON schema" };
    if (ended === "length") return { status: "unknown", text: "an answer with a JSON schema did not end in time" };
    return {
      status: "problem",
      text: "it accepts a JSON schema and ignores it",
      cure: otherModel,
    };
  }

  async apis(): Promise<Found> {
    const absent = await absentApis({ ...this.#target, timeout: this.#remaining() });
    if (this.#signal.aborted) throw new NotReached();
    if (absent.size > 0) await this.#requireRunning("a short one to the paths of Responses and Messages");
    const missing = [
      ...(absent.has("responses") ? ["Responses (Codex needs it)"] : []),
      ...(absent.has("messages") ? ["Messages (Claude Code needs it)"] : []),
    ];
    if (missing.length === 0) return { status: "ok", text: "it has the APIs Chat Completions, Responses and Messages" };
    return { status: "ok", text: `it lacks the APIs: ${missing.join(", ")}`, cure: this.#serve };
  }

  /** The same prompt twice. */
  async cache(): Promise<Found> {
    const probe = chatProbe("cache", "the same prompt twice", {
      messages: words(repeatedWords, "lake"),
      max_tokens: 1,
    });
    const first = await this.#ask(probe);
    if (first.refusal !== undefined)
      return { status: "unknown", text: `whether its cache works: it refuses the prompt: ${first.refusal}` };
    if (first.promptTokens !== undefined) this.#tokensPerWord = first.promptTokens / repeatedWords;
    const { cachedTokens, promptTokens, milliseconds } = await this.#ask(probe);
    if (cachedTokens === undefined) {
      const times = `${first.milliseconds.toFixed(0)} ms, then ${milliseconds.toFixed(0)} ms`;
      return {
        status: "unknown",
        text: `it does not report cached tokens (the same prompt twice took ${times})`,
        ...(this.cures.cacheReport !== undefined && { cure: this.cures.cacheReport }),
      };
    }
    if (cachedTokens > 0)
      return { status: "ok", text: `its cache works: ${cachedTokens} of ${promptTokens ?? "?"} tokens were cached` };
    // OpenAI and others cache longer prompts only (https://platform.openai.com/docs/guides/prompt-caching: 1024 tokens).
    if (this.cures.cache === undefined)
      return { status: "unknown", text: `a repeated prompt of ${promptTokens ?? "?"} tokens was not cached` };
    return {
      status: "problem",
      text: "it processes the same prompt again: its cache does not work",
      cure: this.cures.cache,
    };
  }

  /**
   * A prompt that is longer than the context: it must be refused. Ollama keeps half of the context, num_ctx / 2 + 2 tokens, and answers
   * (ollama/ollama#17427, #17889); `prompt_tokens` says how many were left.
   */
  async cut(): Promise<Found> {
    this.#remaining();
    const size = this.#contextSize;
    const perWord = this.#tokensPerWord;
    const why =
      size === undefined
        ? "its context size is not known"
        : perWord === undefined
          ? "it does not count the tokens of prompts"
          : size > maxFilled
            ? `its context of ${inTokens(size)} takes too long to fill`
            : undefined;
    if (size === undefined || perWord === undefined || why !== undefined)
      return { status: "unknown", text: `whether it cuts prompts that do not fit: ${why}` };
    const count = Math.ceil((size * 1.2) / perWord);
    const { refusal, promptTokens } = await this.#ask(
      chatProbe("cut", "a prompt that does not fit", { messages: words(count, "river"), max_tokens: 1 }),
    );
    if (refusal !== undefined) return { status: "ok", text: "it refuses prompts that do not fit" };
    const sent = Math.round(count * perWord);
    if (promptTokens === undefined || promptTokens >= sent * 0.9)
      return { status: "unknown", text: `it answered a prompt of ${inTokens(sent)}, more than its context` };
    return {
      status: "problem",
      text: `it cuts prompts without an error: of ${inTokens(sent)}, it read ${inTokens(promptTokens)}`,
      cure: this.cures.context ?? "start the server with a larger context, and without context shift",
    };
  }

  /** What the server refuses of what some servers refuse, for its profile, too. */
  async accepts(): Promise<Found> {
    const refused: string[] = [];
    const known = knownProfile(this.#target.url, this.#entry);
    let asked = 0;
    for (const probe of profileProbes) {
      const { id, about, members } = probe;
      // A server refuses every request with tools for the same reason.
      const isKnown = (this.#refusesTools || this.profile.tools === false) && members["tools"] !== undefined;
      if ((ownLines.test(id) && probe.isAdaptedAnyway) || (isKnown && id !== "tools")) continue;
      if (this.#signal.aborted) break;
      const { exchange } = await this.#send(chatProbe(id, about, { max_tokens: 1, ...members }));
      // Without an answer, or with one such as a rate limit, nothing is known.
      if (!exchange?.response.complete) break;
      const { status } = exchange.response;
      if (status !== 200 && !isRefusalOfProbe(status)) break;
      if (status !== 200 && !this.#isTruewire)
        this.profile = mergedProfile(this.profile, lessonOf(probe, exchange, mergedProfile(known, this.profile)));
      if (ownLines.test(id)) continue;
      asked++;
      if (status !== 200) refused.push(about);
    }
    if (asked === 0 && this.#signal.aborted) throw new NotReached();
    if (asked === 0) return { status: "unknown", text: "what else it refuses: it did not answer" };
    if (refused.length === 0)
      return { status: "ok", text: `it accepts ${asked} kinds of requests that some servers refuse` };
    const cure = `${this.#serve} adapts requests to it where that is possible`;
    return { status: "ok", text: `it refuses: ${refused.join(", ")}`, ...(!this.#isTruewire && { cure }) };
  }

  /** Returns the three worst findings of the checker's rules: in all answers, and in one more if there is time. */
  async worst(): Promise<DoctorFinding[]> {
    if (!this.hasFailed && !this.#signal.aborted) {
      try {
        // Not a request that no client sends, such as one without messages: a server may end at it.
        const result = await this.#send(probeNamed("text/stream"));
        if (!this.#signal.aborted) this.#judged.push(judgedResult(result, undefined));
      } catch (error) {
        if (!(error instanceof ServerStopped)) throw error;
        return [...this.#worstRules(), stopped(error)];
      }
    }
    return this.#worstRules();
  }

  #worstRules(): DoctorFinding[] {
    const { rules } = reportOf(this.#target.url, this.#judged.map(judgementOf));
    const worstFirst = (["error", "warning"] as const).flatMap((severity) =>
      concerns.flatMap((concern) =>
        rules.filter((rule) => rule.status === "broken" && rule.severity === severity && rule.concern === concern),
      ),
    );
    // Streams and bodies have rules of the same words, and `schema` has said that one.
    const broken = worstFirst.filter(
      ({ id, says }, at) =>
        id !== "body/json-text" && id !== "request/json" && worstFirst.findIndex((rule) => rule.says === says) === at,
    );
    const seen = this.#judged.length;
    if (seen === 0) return [{ id: "rules", status: "unknown", text: "the rules of `truewire check`: not reached" }];
    if (broken.length === 0)
      return [{ id: "rules", status: "ok", text: `no rule of \`truewire check\` is broken in ${seen} answers` }];
    return broken.slice(0, 3).map(({ id, concern, says, breaks, evidence: [first] }, at): DoctorFinding => {
      const found = first === undefined || first.found === "" ? "" : ` (found: ${first.found})`;
      const clients = breaks.length === 0 ? "" : `; breaks ${breaks.slice(0, 3).join(", ")}`;
      const rest = broken.length - 3;
      const more = at === 2 && rest > 0 ? `; ${rest} more: truewire check ${this.#target.url}` : "";
      const cure = requestRules.test(id) ? otherModel : this.#serve;
      return { id, status: "problem", text: `${concern}: ${says}${found}${clients}`, cure: `${cure}${more}` };
    });
  }

  /** Returns the time that remains, in milliseconds, or throws NotReached. */
  #remaining(): number {
    if (this.#signal.aborted) throw new NotReached();
    return Math.max(1, Math.ceil(this.#deadline - performance.now()));
  }

  /** Sends a probe. Throws NotReached if there is no time left for its answer. */
  async #ask(probe: Probe): Promise<ProbeAnswer> {
    this.#remaining();
    const result = await this.#send(probe);
    const isCut = result.exchange === undefined || !result.exchange.response.complete;
    if (isCut && this.#signal.aborted) throw new NotReached();
    const answer = answerOf(result);
    // What is refused has a line of its own.
    if (answer.refusal === undefined || probe.id === "text") this.#judged.push(judgedResult(result, undefined));
    return answer;
  }

  /** Sends a probe. Throws ServerStopped if it gets no whole answer, and the server refuses connections from then on. */
  async #send(probe: Probe): Promise<ProbeResult> {
    const result = await send(probe, this.#target, this.#signal);
    if (result.exchange?.response.complete || this.#signal.aborted) return result;
    await this.#requireRunning(`${probe.about} (${probe.method} ${probe.path(this.#target.model)})`);
    return result;
  }

  /** Throws ServerStopped if the server refuses connections. `request`: the last one, in a few words. */
  async #requireRunning(request: string): Promise<void> {
    const { exchange, failure = "" } = await send(getProbe("/models"), this.#target, this.#signal);
    if (!exchange && /ECONNREFUSED/.test(failure)) throw new ServerStopped(request);
  }

  /** What its own API says, each path of which is asked once; undefined if it has none. */
  async #ownFacts({ about }: KnownServer): Promise<ServerFacts | undefined> {
    const { origin } = new URL(this.#target.url);
    let facts: ServerFacts | undefined;
    for (const { path, read } of about) {
      if (this.#signal.aborted) break;
      const { exchange } = (this.#asked[path] ??= await send(
        getProbe(path),
        { ...this.#target, url: origin },
        this.#signal,
      ));
      const answer = exchange?.response.status === 200 ? parsedOrNothing(exchange.response.body) : undefined;
      const found = isObject(answer) ? read(answer, this.#target.model) : undefined;
      if (found) facts = Object.assign(facts ?? {}, found);
    }
    return facts;
  }
}

/** Probes of what has a line of its own. */
const ownLines = /^(?:tools|json-schema|stream-options|system-later)$/;

/** Rules that the model's server has to keep: nothing in front of it can. */
const requestRules = /^(?:request|body)\/(?:stop|max-tokens|required|named|no-tools|parallel)$/;
const otherModel = "update the server, or serve the model's file: truewire serve model.gguf";

/** Servers whose own API says who they are, where their list of models does not. */
const ownApis: ReadonlySet<string> = new Set(["Ollama", "KoboldCpp", "mellea m serve"]);

function inTokens(size: number): string {
  return `${Math.round(size).toLocaleString("en-US")} tokens`;
}

/** A prompt of common words, each about one token. `topic` comes first, so that prompts of two topics have no beginning in common. */
function words(length: number, topic: string): readonly object[] {
  const cycle = [topic, "and", "the", "house", "by", "a", "green", "tree", "under", "blue", "sky", "with"];
  const text = Array.from({ length }, (_, at) => cycle[at % cycle.length]).join(" ");
  return [{ role: "user", content: text }];
}

function chatProbe(id: string, about: string, members: Readonly<Record<string, unknown>>): Probe {
  const body = (model: string) => ({ model, temperature: 0, ...members });
  return { id, about, endpoint: "chat", method: "POST", path: () => "/chat/completions", body, expects: "answer" };
}

function withLimit(probe: Probe, limit: number): Probe {
  return { ...probe, body: (model) => ({ ...probe.body?.(model), max_tokens: limit }) };
}

/** A probe of `truewire check`. */
function probeNamed(id: string): Probe {
  const probe = probes.find((one) => one.id === id);
  if (!probe) throw new Error(`There is no probe ${id}.`);
  return probe;
}
