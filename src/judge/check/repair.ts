import { apiOfCapture, isOfOtherEndpoint, orderedCapture } from "../../wire/apis/ordered-capture.ts";
import type { CapturedApi } from "../../wire/apis/ordered-capture.ts";
import { rewrittenCapture } from "../../wire/apis/repair-capture.ts";
import type { RepairedCapture, RepairOptions } from "../../wire/apis/repair-capture.ts";
import { exact, lean } from "../../wire/apis/profile.ts";
import { isObject } from "../../wire/core/json.ts";
import { judgeAnswer } from "./check-capture.ts";
import { knownPart } from "./known-part.ts";
import { ruleNamed } from "./rules/every-rule.ts";
import { random as secureRandom } from "../../wire/random/random.ts";

const paths: Readonly<Record<CapturedApi, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  responses: "/responses",
  messages: "/messages",
};

/**
 * Repairs a captured answer. One in which the rules of the profile find nothing wrong is returned unchanged, also where something in it is
 * unknown: an event, or in profile `exact` a member or a value, as vendors add them. One that has only lost the vendor's way of printing it
 * (profile `exact`) is printed again. Any other is written from its events, as `serve` writes it.
 */
export function repairCapture(capture: string, options: RepairOptions): RepairedCapture {
  const api = options.from === "auto" ? apiOfCapture(capture) : options.from;
  const own = { ...options, from: api };
  const rewritten = rewrittenCapture(capture, own);
  if (isOfOtherEndpoint(capture)) return rewritten;
  const isExact = options.profile.name === "exact";
  const isRight = (body: string): boolean => isRightAnswer(body, api, options);
  if (rewritten.repairs.length === 0 && isRight(capture)) return { ...rewritten, body: capture };
  const known = knownPart(capture, api, isExact);
  if (known !== capture && isRight(known)) {
    const { repairs, end } = rewrittenCapture(known, own);
    if (repairs.length === 0) return { body: capture, repairs, end };
  }
  if (!isExact) return rewritten;
  const { request, random } = options;
  const ordered = orderedCapture(capture, { api, request, random });
  const isPrinted = ordered !== undefined && (isRight(ordered) || isRight(knownPart(ordered, api, true)));
  return isPrinted ? { ...rewritten, body: ordered } : rewritten;
}

/** Whether the rules find nothing wrong in an answer: to its request, or at all, since recorders edit requests. */
function isRightAnswer(body: string, api: CapturedApi, { profile, request }: RepairOptions): boolean {
  return [isObject(request) ? { ...request } : undefined, undefined].some((asked) => {
    const { findings } = judgeAnswer("capture", body, { path: paths[api], request: asked }, profile.name);
    return findings.every(({ rule }) => ruleNamed(rule).severity === "note");
  });
}

export interface RepairCaptureOptions {
  /** The form to write where something has to be repaired: default `lean`; `exact`: the bytes of the vendor. */
  readonly wire?: "lean" | "exact";
  /** The body of the request, if known: answers that repeat parts of it keep their order. */
  readonly request?: unknown;
  /** Unix time in seconds, for answers without a time; default: now. */
  readonly created?: number;
  /** Uniform in [0, 1): for obfuscation, padding and missing ids; default: cryptographically secure numbers. */
  readonly random?: () => number;
}

/**
 * Repairs a captured answer of any server: the text of an event stream, or a JSON body. `api` is the API that the answer belongs to; `auto`
 * detects it from the answer. An answer in which the rules of `truewire check` find nothing wrong is returned unchanged. One that was cut
 * off or refused is written with its error. The body of an endpoint that generates nothing (models, embeddings, counts of tokens, batches,
 * compaction) is returned unchanged. Nothing is thrown for what is read. For a stream that is still arriving, pass the events of a
 * reader to a writer: `writeMessagesStream(readMessagesStream(response), { model })`.
 *
 * @example
 * import { repair } from "truewire";
 *
 * const broken = 'data: {"type":"message_start","message":{"model":"m"}}\n\ndata: {"type":"content_block_delta","delta":{"text":"Hi"}}\n\n';
 * const { body, end } = repair("messages", broken);
 * console.log(body.match(/"text_delta","text":"(.*?)"/)[1], end.kind);
 * // → Hi truncated
 */
export function repair(
  api: CapturedApi | "auto",
  capture: string,
  options: RepairCaptureOptions = {},
): RepairedCapture {
  const { wire = "lean", created = Math.floor(Date.now() / 1000), random = secureRandom, request } = options;
  const profile = wire === "exact" ? exact : lean;
  return repairCapture(capture, { profile, from: api, random, now: created, request });
}
