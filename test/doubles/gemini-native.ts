import { type AnswerPart, answerOf } from "../../src/judge/between/facts.ts";
import { startVendor } from "../../src/judge/between/vendor.ts";
import { callState } from "../../src/wire/apis/gemini/signatures.ts";
import { signatureStandIns } from "../../src/wire/apis/gemini/turn-rules.ts";
import { listOf, objectOf, sessionDouble, signer, stepOf, textOf } from "./chat-server.ts";
import type { Double, Json, Refusal, Turns } from "./chat-server.ts";
import { Sessions } from "./task.ts";
import type { Conversation, Step, TaskCall } from "./task.ts";

/*
 * Gemini 3 at its own API, as an account meets it. The first call of each step, and the last text, have a signature, which is verified
 * wherever it is. The words of the refusal: google-gemini/gemini-cli#13467 (corrupted).
 */

/** The parts of a content, and the members of one, in either spelling. */
const partsOf = (content: Json): readonly Json[] => listOf(content["parts"]);
const member = (object: Json, name: string): unknown =>
  object[name] ?? object[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];

function callOf(part: Json): TaskCall | undefined {
  const call = member(part, "functionCall");
  if (call === undefined) return undefined;
  return { name: String(objectOf(call)["name"]), input: objectOf(objectOf(call)["args"]) };
}

function readContents(body: Json): Conversation {
  const contents = listOf(body["contents"]);
  const last = contents.findLastIndex(
    ({ role, parts }) => role !== "model" && listOf(parts).some(({ text }) => String(text).includes("Session ")),
  );
  const since = contents.slice(last + 1).flatMap(partsOf);
  return {
    userText: textOf(contents[last]?.["parts"]),
    calls: since.flatMap((part) => callOf(part) ?? []),
    results: since.filter((part) => member(part, "functionResponse") !== undefined).length,
  };
}

const usage = (body: Json) => ({
  promptTokens: Math.ceil(JSON.stringify([body["contents"], body["tools"]]).length / 4),
  completionTokens: 8,
  promptDetails: { cached_tokens: 2 },
  completionDetails: { reasoning_tokens: 3 },
});

/** Starts a server with a key of its own. Its model answers with `turn`, or does the task of all sessions. */
export async function startGeminiNative(
  turn?: Turns,
  models: readonly string[] = ["gemini-3-pro-preview"],
): Promise<Double> {
  const { sign, isValid } = signer("gemini-native");
  const sessions = new Sessions();
  const requests: Json[] = [];
  const refusals: string[] = [];
  // Arguments are a Struct, whose members have no order.
  const signedCall = ({ name, input }: TaskCall) => [name, JSON.stringify(input, Object.keys(input).toSorted())];
  let calls = 0;

  const isForeign = (part: Json): boolean => {
    const signature = member(part, "thoughtSignature");
    if (signature === undefined || signatureStandIns.has(String(signature))) return false;
    const call = callOf(part);
    return call ? !isValid(signature, ...signedCall(call)) : !isValid(signature, "text");
  };

  const refusal = (body: Json): Refusal | undefined => {
    if (double.turns >= double.downAt) return { status: 503, body: unavailable };
    requests.push(body);
    const parts = listOf(body["contents"]).flatMap((content) => (content["role"] === "model" ? partsOf(content) : []));
    return parts.some(isForeign) ? { status: 400, body: corrupted } : undefined;
  };

  const answerParts = ({ reasoning, text, calls: made }: Step): AnswerPart[] => [
    ...(reasoning === undefined ? [] : [{ reasoning }]),
    ...(text === undefined
      ? []
      : [{ text, ...(made.length === 0 && { state: { kind: "part", value: sign("text") } as const }) }]),
    ...made.map((call, at) => ({
      id: `call_${++calls}`,
      name: call.name,
      arguments: JSON.stringify(call.input),
      ...(at === 0 && { state: callState(sign(...signedCall(call))) }),
    })),
  ];

  const { url, close } = await startVendor({
    apis: ["gemini"],
    port: 0,
    isKeyless: true,
    models: models.map((id) => ({
      id,
      created: 0,
      ownedBy: "google",
      contextLength: 1_048_576,
      endpoints: ["chat", "embeddings"],
    })),
    counted: 7,
    onRefusal: (words) => void refusals.push(words),
    other({ path, body }) {
      if (!path.endsWith(":batchEmbedContents")) return undefined;
      return { embeddings: listOf(objectOf(body())["requests"]).map(() => ({ values: [0.6, 0.8] })) };
    },
    refusal({ counts, body = {} }) {
      const refused = counts ? undefined : refusal(body);
      if (refused?.status === 400) refusals.push(JSON.stringify(refused.body));
      return refused && { status: refused.status, body: objectOf(refused.body) };
    },
    answer({ body = {} }) {
      const step = turn === undefined ? sessions.next(readContents(body), body["contents"]) : stepOf(turn, body);
      return { batches: answerOf(answerParts(step), { usage: usage(body), least: 9 }) };
    },
  });
  const double = sessionDouble({ url: `${url}/v1beta`, requests, refusals, close }, sessions);
  return double;
}

const error = (code: number, message: string, status: string): Json => ({ error: { code, message, status } });
const unavailable = error(503, "The model is overloaded. Please try again later.", "UNAVAILABLE");
const corrupted = error(400, "Corrupted thought signature.", "INVALID_ARGUMENT");
