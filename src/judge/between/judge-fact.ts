import { isObject } from "../../wire/core/json.ts";
import { runSync } from "../../wire/core/steps.ts";
import { toolCallId } from "../../wire/apis/ids.ts";
import { sourcePorts } from "../../wire/apis/ports.ts";
import type { ReadRequest } from "../../wire/apis/port.ts";
import { exact, lean } from "../../wire/apis/profile.ts";
import { readResponseBody } from "../../wire/apis/tolerant/read-response.ts";
import { accumulate, type Generation } from "../../wire/core/accumulate.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { WellFormedEvents } from "../../wire/core/well-formed.ts";
import { random } from "../../wire/random/random.ts";
import { type GatewayAnswer, headersOf } from "./ask-gateway.ts";
import { type Difference, differences, shown } from "./compare.ts";
import { nameOf } from "./confirm.ts";
import { type Api, type Fact, factIn, type Json, markerOf, parsed, portOf, type ScriptedFailure } from "./facts.ts";
import type { FactFinding, Severity } from "./finding.ts";
import { isExpressible, laterRules, neutralAnswer, neutralRequest, withoutStates } from "./neutral.ts";
import { vendorContext, type VendorRequest } from "./vendor.ts";

/** Both sides of one fact. */
export interface Observed {
  readonly fact: Fact;
  readonly client: Api;
  /** As the gateway is said to ask; it may ask by another API. */
  readonly vendor: Api;
  /** The plain request. */
  readonly base: Fact;
  /** The requests that the vendor has received for it: more than one if the gateway has repeated it. */
  readonly received: readonly VendorRequest[];
  /** undefined: the gateway has not answered. */
  readonly answer: GatewayAnswer | undefined;
  /** Why not. */
  readonly failure?: string;
}

/** What the gateway has lost of the request, on its way to the vendor. */
export function judgeRequest(observed: Observed): FactFinding[] {
  const { fact, client, base, received, answer, failure } = observed;
  const [first] = received;
  const vendor = first?.api ?? observed.vendor;
  const side = fact.side === "transport" ? "request" : fact.side;
  const whole = {
    side: "request" as const,
    path: "",
    clientSide: shown(fact.body),
    vendorSide: first?.text.slice(0, 2000) ?? "",
  };
  if (!first) {
    const status =
      answer === undefined ? (failure ?? "no answer") : `status ${answer.status}: ${answer.text.slice(0, 300)}`;
    const isForeign = client !== vendor && (fact.isOfVendor === true || cannotExpress(fact, base, client, vendor));
    const severity: Severity = isForeign ? "note" : fact.side === "request" ? "error" : "warning";
    return [
      {
        ...whole,
        kind: "not-sent",
        severity,
        path: fact.side === "request" ? nameOf(fact) : "answers",
        message: `The vendor got no request; the client got ${status}`,
      },
    ];
  }
  if (first.refusal !== undefined || !first.request)
    return [
      {
        ...whole,
        kind: "refused",
        severity: "error",
        // One mistake of a gateway may break all requests.
        path: first.refusal?.param ?? nameOf(fact),
        message: `The vendor refuses what the gateway has sent: ${first.refusal?.message ?? ""}`,
      },
    ];
  if (side !== "request") return [];
  const { returns = [] } = fact;
  const lost = returns.filter(({ value }) => !first.text.includes(value)).map((state) => stateLost(state, whole));
  const front = readFront(client, fact);
  const clientSide = neutralRequest(front);
  const rules = laterRules(front);
  const vendorSide = neutralRequest(first.request);
  const isSame = client === vendor;
  // States of another API are looked for by their values.
  const compared = isSame || returns.length === 0 ? (request: Json): Json => request : withoutStates;
  const all = differences(withoutModel(compared(clientSide)), withoutModel(compared(vendorSide))).map(named);
  const standsIn =
    !isSame && all.some((difference) => difference.kind !== "invented" && isMissing(difference, vendor, vendorSide));
  const found = all.map((difference) => ({
    side: "request" as const,
    kind: difference.kind,
    severity:
      !isSame && (fact.isOfVendor === true || isElsewhere(difference, vendor, rules, first.text))
        ? ("note" as const)
        : requestSeverity(difference, vendor, vendorSide, isSame, standsIn),
    path: difference.path,
    message: sentenceOf(difference),
    clientSide: JSON.stringify(fact.body),
    vendorSide: first.text,
  }));
  return [
    ...lost,
    ...found,
    ...judgeHeaders(fact, first, isSame),
    ...(isSame && first.body && lost.length + found.length === 0 ? rawNotes(fact.body, first.body) : []),
  ];
}

function stateLost(
  { value, isDemanded }: NonNullable<Fact["returns"]>[number],
  whole: Pick<FactFinding, "side" | "clientSide" | "vendorSide">,
): FactFinding {
  const effect = isDemanded
    ? "It may refuse the request"
    : "It was of an earlier question, and the model no longer has it";
  const message = `The client has given back the whole answer, and the vendor does not get its own signature or reasoning back: ${value}. ${effect}.`;
  const path = isDemanded ? "returned state" : "returned state of an earlier question";
  return { ...whole, kind: "lost", severity: isDemanded ? "error" : "warning", path, message };
}

function readFront(client: Api, fact: Fact): GenerationRequest {
  return readBody(client, fact).request;
}

/** What gives back an answer of the gateway is read tolerantly. */
function readBody(client: Api, fact: Fact): ReadRequest {
  const headers = headersOf({ client, key: undefined }, fact);
  const header = (name: string): string | undefined => headers[name];
  const inPath = client === "gemini" && { model: "m", stream: fact.stream };
  const options = { profile: fact.withAnswer ? lean : exact, forwards: true, header };
  return runSync(portOf(client).readRequest({ ...fact.body, ...inPath }, "req_between", options));
}

function withoutModel({ extra, ...request }: Json): Json {
  return { ...request, ...(isObject(extra) && { extra }) };
}

/** Whether the vendor's API has nothing of what the fact adds to the plain request. */
function cannotExpress(fact: Fact, base: Fact, client: Api, vendor: Api): boolean {
  const body = JSON.parse(JSON.stringify(base.body).replaceAll(markerOf(base.id), markerOf(fact.id))) as Json;
  const plain = neutralRequest(readFront(client, { ...base, body }));
  const added = differences(plain, neutralRequest(readFront(client, fact)))
    .map(named)
    .filter(({ path }) => path !== "stream");
  return added.length > 0 && added.every((difference) => isMissing(difference, vendor, {}));
}

/**
 * Whether a text is elsewhere in the request because the vendor's API has no place for it: a rule between turns is in the text of a turn, and
 * Ollama's messages have no order of texts and images.
 */
function isElsewhere(difference: Difference, vendor: Api, rules: readonly string[], text: string): boolean {
  const { kind, path, clientSide, vendorSide } = difference;
  const has = (whole: string, part: unknown): boolean => whole.includes(JSON.stringify(part).slice(1, -1));
  if (path === "system") {
    const first = rules.reduce((whole, rule) => whole.replace(`\n${rule}`, ""), String(clientSide));
    return first === vendorSide && rules.every((rule) => has(text, rule));
  }
  if (!path.startsWith("messages[")) return false;
  if (kind === "invented") return rules.some((rule) => has(JSON.stringify(vendorSide), rule));
  const part = isObject(clientSide) ? clientSide["text"] : undefined;
  const isOrdered = isExpressible("request", vendor, "messages[].content order");
  return kind === "lost" && typeof part === "string" && !isOrdered && has(text, part);
}

/** `request`: what the vendor has received. */
function isMissing({ kind, path, to = "" }: Difference, vendor: Api, request: Json): boolean {
  const { reasoning } = request;
  const thinks = isObject(reasoning) && Object.keys(reasoning).length > 0 && reasoning["mode"] !== "off";
  // With thinking, Anthropic refuses these.
  if (vendor === "messages" && thinks && /^sampling\.(?:temperature|topP|topK)$/.test(path)) return true;
  const list = path.slice(0, path.lastIndexOf("["));
  const isMoved = kind === "moved" && to.startsWith(`${list}[`);
  return !isExpressible("request", vendor, isMoved ? `${list} order` : kind === "reordered" ? `${path} order` : path);
}

/** The path of a part of a message with its kind: `messages[0].content[1].image`. */
function named(difference: Difference): Difference {
  const { path, clientSide, vendorSide } = difference;
  const part = clientSide ?? vendorSide;
  if (!path.endsWith("]") || !isObject(part)) return difference;
  const kind = Object.keys(part).find((name) => partKinds.has(name));
  return kind === undefined ? difference : { ...difference, path: `${path}.${kind}` };
}

/** An empty description, or list of required properties, means the same as none. */
function isEmpty(value: unknown): boolean {
  return value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}

const partKinds: ReadonlySet<string> = new Set(["text", "image", "imageUrl", "reasoning", "state", "file", "data"]);

/** `standsIn`: the vendor's API cannot express something of this request, and what is added may take its place. */
function requestSeverity(
  difference: Difference,
  vendor: Api,
  request: Json,
  isSame: boolean,
  standsIn: boolean,
): Severity {
  const { kind, path, clientSide, vendorSide } = difference;
  if (kind === "invented") {
    // What the vendor's API demands, or a gateway may add: it changes no answer.
    if (standsIn || isEmpty(vendorSide) || /^(?:limits\.maxTokens|extra|stream|reasoning)/.test(path)) return "note";
    return /^(?:system|messages|tools|output|toolChoice)/.test(path) ? "error" : "warning";
  }
  if (!isSame && isMissing(difference, vendor, request)) return "note";
  // Tools that may not be called are left out where there is no choice among tools.
  if (path === "tools" && standsIn) return "note";
  if (standsIn && kind === "changed" && String(vendorSide).includes(String(clientSide))) return "note";
  if (path === "stream" || path.startsWith("reasoning")) return isSame ? "error" : "warning";
  return "error";
}

function judgeHeaders(fact: Fact, { headers }: VendorRequest, isSame: boolean): FactFinding[] {
  if (!isSame) return [];
  return Object.entries(fact.headers ?? {}).flatMap(([name, value]): FactFinding[] => {
    const vendorSide = String(headers[name] ?? "");
    if (value.split(",").every((part) => vendorSide.includes(part.trim()))) return [];
    return [
      {
        side: "request",
        kind: "header-lost",
        severity: "error",
        path: name,
        message: `The header ${name} is ${vendorSide === "" ? "lost" : `now ${vendorSide}`}; the client sent ${value}.`,
        clientSide: `${name}: ${value}`,
        vendorSide: `${name}: ${vendorSide}`,
      },
    ];
  });
}

/**
 * Differences of the JSON where the request means the same: a text as a list of parts, an added default. The bytes are another beginning of
 * the prompt for a cache. A member that is lost may mean something to the vendor.
 */
function rawNotes(clientSide: Json, vendorSide: Json): FactFinding[] {
  const { model: _, ...own } = clientSide;
  const { model: __, ...other } = vendorSide;
  return differences(own, other).map((difference) => {
    const isLost =
      difference.kind === "lost" &&
      !/^(?:messages|input|contents|system|systemInstruction|instructions|tools|functions|function_call)\b/.test(
        difference.path,
      );
    return {
      side: "request",
      kind: difference.kind,
      severity: isLost ? "warning" : "note",
      path: `body.${difference.path}`,
      message: `${sentenceOf(difference)}${isLost ? "" : " It means the same."}`,
      clientSide: JSON.stringify(clientSide),
      vendorSide: JSON.stringify(vendorSide),
    };
  });
}

/** What the gateway has lost of the answer, on its way to the client. */
export function judgeAnswer({ fact, client, received, answer }: Observed): FactFinding[] {
  const [last] = received.slice(-1);
  if (!last?.request || !answer || fact.client === "leaves") return [];
  const vendor = last.api;
  const scripted = fact.answer?.failure;
  const texts = { clientSide: answer.text.slice(0, 4000), vendorSide: last.sent.slice(0, 4000) };
  if (scripted) return judgeError(fact, scripted(vendor), answer, client === vendor, texts, scripted(client).status);
  const { cutAfter } = fact.answer ?? {};
  if (cutAfter !== undefined && answer.status >= 500) return [];
  if (answer.status !== 200)
    return [
      {
        side: "answer",
        kind: "refused",
        severity: "error",
        path: fact.side === "answer" ? nameOf(fact) : "",
        message: `The vendor has answered, and the client got status ${answer.status}: ${answer.text.slice(0, 300)}`,
        ...texts,
      },
    ];
  const generation = readAnswer(client, answer.text, fact.stream);
  if (cutAfter !== undefined) {
    const saysSo = !answer.isComplete || generation.end.kind !== "done";
    if (saysSo) return [];
    return [
      {
        side: "transport",
        kind: "cut-without-error",
        severity: "error",
        path: fact.stream ? "stream" : "body",
        message: "The vendor's connection broke, and the client got an answer that looks complete.",
        ...texts,
      },
    ];
  }
  if (generation.end.kind !== "done")
    return [
      {
        side: "answer",
        kind: "unreadable",
        severity: "error",
        path: "",
        message: `The client cannot read the answer: ${"failure" in generation.end ? generation.end.failure.message : generation.end.kind}`,
        ...texts,
      },
    ];
  const [choice] = generation.choices;
  const marker = factIn(choice?.text || (choice?.toolCalls[0]?.arguments ?? ""));
  if (marker !== undefined && marker !== fact.id)
    return [
      {
        side: "answer",
        kind: "mixed-up",
        severity: "error",
        path: "",
        message: `The client got the answer of another request (${marker}).`,
        ...texts,
      },
    ];
  const vendorSide = neutralAnswer(readAnswer(vendor, last.sent, last.request.stream));
  const clientSide = neutralAnswer(generation);
  const isSame = client === vendor;
  const found = differences(vendorSide, clientSide).map((difference): FactFinding => ({
    side: "answer",
    kind: difference.kind,
    severity:
      received.length > 1 && difference.path.startsWith("usage")
        ? "note"
        : answerSeverity(difference, client, isSame, fact),
    path: difference.path,
    message: sentenceOf(difference),
    ...texts,
  }));
  return [...found, ...judgePace(fact, last, answer)];
}

function answerSeverity(
  { kind, path, clientSide: sent }: Difference,
  client: Api,
  isSame: boolean,
  { stream, body }: Fact,
): Severity {
  if (kind === "invented") return "note";
  // A stream of chat has usage only if the client asks for it, and a gateway asks for its own sake.
  if (path === "usage" && client === "chat" && stream && body["stream_options"] === undefined) return "note";
  const place = path === "finish" ? `finish ${String(sent)}` : path;
  if (!isSame && !isExpressible("answer", client, place)) return "note";
  return "error";
}

function judgeError(
  fact: Fact,
  { status, headers = {}, body }: ScriptedFailure,
  answer: GatewayAnswer,
  isSame: boolean,
  texts: { readonly clientSide: string; readonly vendorSide: string },
  /** Of the same error in the client's API: Google has no 401 for a wrong key. */
  ownStatus: number,
): FactFinding[] {
  // Named by the fact: two errors of an API may have the same status.
  const path = nameOf(fact).replace(/^error-(\d+)-.*$/, "status $1");
  const found: FactFinding[] = [];
  const add = (severity: Severity, what: string, message: string): void =>
    void found.push({ side: "answer", kind: "error-changed", severity, path: `${path} ${what}`, message, ...texts });
  const isSameClass = status >= 500 && answer.status >= 500;
  if (answer.status !== status && answer.status !== ownStatus)
    add(
      answer.status === 200 ? "error" : isSameClass ? "note" : "warning",
      "status",
      `The vendor's status ${status} became ${answer.status}.`,
    );
  const error = errorIn(body);
  const own = errorIn(parsed(answer.text));
  if (!String(own["message"] ?? answer.text).includes(String(error["message"])))
    add("warning", "message", `The vendor's message is lost: ${shown(own["message"] ?? answer.text)}`);
  for (const name of isSame ? ["type", "code", "status"] : [])
    if (error[name] !== undefined && JSON.stringify(own[name]) !== JSON.stringify(error[name]))
      add("warning", name, `The ${name} of the error is ${shown(own[name])}; the vendor sent ${shown(error[name])}.`);
  const { "retry-after": retryAfter } = headers;
  if (retryAfter !== undefined && answer.headers["retry-after"] === undefined)
    found.push({
      side: "answer",
      kind: "header-lost",
      severity: "warning",
      path: "retry-after",
      message: `The vendor's retry-after of ${retryAfter} seconds is lost.`,
      ...texts,
    });
  return found;
}

/** The object of an error; Ollama's is a text. */
function errorIn(body: unknown): Json {
  const error = isObject(body) ? body["error"] : undefined;
  if (typeof error === "string") return { message: error };
  return isObject(error) ? error : {};
}

/** A stream is buffered if nothing of it arrives before the vendor has sent the last of it. */
function judgePace(fact: Fact, { lastSentAt = 0 }: VendorRequest, answer: GatewayAnswer): FactFinding[] {
  if ((fact.answer?.gapMs ?? 0) === 0 || answer.firstAt < lastSentAt) return [];
  return [
    {
      side: "transport",
      kind: "delayed",
      severity: "error",
      path: "stream",
      message: "The stream is buffered: the client gets its first byte after the vendor has sent the last one.",
      clientSide: answer.text.slice(0, 1000),
      vendorSide: "",
    },
  ];
}

function readAnswer(api: Api, text: string, stream: boolean): Generation {
  const reader = sourcePorts[api].reader({ newCallId: () => toolCallId(random) });
  // Without `alt=sse`, a stream of Gemini is a list.
  const isFrames = stream && !text.trimStart().startsWith("[");
  const events = isFrames ? [...reader.push(text), ...reader.end()] : readResponseBody(text, reader);
  return accumulate(new WellFormedEvents().read(events));
}

/** An answer as the client's SDK has it when its stream has ended. undefined: the client cannot read it. */
export function wholeAnswer(client: Api, fact: Fact, { text, status }: GatewayAnswer): string | undefined {
  if (status !== 200) return undefined;
  if (!fact.stream) return text;
  const generation = readAnswer(client, text, true);
  if (generation.end.kind !== "done") return undefined;
  // Google's SDKs keep the parts of all chunks.
  if (client === "gemini")
    return JSON.stringify({ candidates: [{ content: { role: "model", parts: chunkParts(text) } }] });
  return readBody(client, fact).writeResponse(generation, vendorContext("m"));
}

function chunkParts(text: string): unknown[] {
  const lines = text.split("\n").filter((line) => line.startsWith("data:"));
  const whole = lines.length > 0 ? lines.map((line) => parsed(line.slice(5))) : parsed(text);
  const chunks = (Array.isArray(whole) ? whole : []) as { candidates?: { content?: { parts?: unknown[] } }[] }[];
  return chunks.flatMap(({ candidates: [first] = [] }) => first?.content?.parts ?? []);
}

function sentenceOf({ kind, path, clientSide, vendorSide, to }: Difference): string {
  switch (kind) {
    case "lost":
      return `${path} is lost: ${shown(clientSide)}.`;
    case "invented":
      return `${path} is added: ${shown(vendorSide)}.`;
    case "moved":
      return `${path} is moved to ${to ?? ""}: ${shown(clientSide)}.`;
    case "reordered":
      return `${path} is in another order: ${shown(vendorSide)} in place of ${shown(clientSide)}.`;
    case "changed":
      return `${path} is ${shown(vendorSide)} in place of ${shown(clientSide)}.`;
  }
}
