import { digestText } from "../../wire/core/digest.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import { callState } from "../../wire/apis/gemini/signatures.ts";
import { png, unicode, weather } from "./fact-values.ts";
import { type AnswerPart, answerOf, type Api, baseBody, type Fact, type Json, markerOf, turnsOf } from "./facts.ts";
import { isExpressible } from "./neutral.ts";
import { editOf } from "./request-facts.ts";
import { nextTurns, type Outcome, reasoningMembers, sessionBody } from "./session-turns.ts";
import { readAsVendor } from "./vendor.ts";

/*
 * Sessions as agents have them, made from a seed: questions with images and documents, reasoning that its vendor demands back, parallel
 * calls, results with errors and images, instructions that change, cache marks that move. Each request gives back what the client has
 * received, so that it contains what the gateway has made of the ids and of the vendor's state.
 */

/** Parts of questions, by their facts; `base`: a text alone. */
const questions = ["base", "image", "document", "user-unicode"];

const outcomes: readonly Outcome[] = [
  { text: "Rain until noon." },
  { text: "no such city", isError: true },
  { text: "The map.", image: png },
  { text: unicode },
];

/** Members of a session, by their facts: those that the vendor of the client's API takes with the others, three at most. */
const members =
  "temperature top-p top-k max-tokens stop seed penalties user metadata cache-key tier verbosity keep-alive".split(" ");

/** The number of calls of each answer, for each question: the last one has none. */
function roundsOf(seed: number): number[][] {
  const first = 1 + pick(3, seed, "first");
  return shuffled([[first, first === 1 ? 2 : 1, 0], [0], [1 + pick(3, seed, "last"), 0]], seed, "rounds");
}

/** The requests of one session from a client to a vendor: the same for the same seed. */
export function sessionFactsOf(client: Api, vendor: Api, model: string, seed: number): Fact[] {
  const takesFiles = client === vendor || isExpressible("request", vendor, "messages[].content[].file");
  const possible = questions.filter((id) => takesFiles || id !== "document");
  const asked = shuffled(possible, seed, "questions");
  const results = shuffled(outcomes, seed, "outcomes");
  const facts: Fact[] = [];
  const states: { readonly question: number; readonly value: string }[] = [];
  for (const [question, rounds] of roundsOf(seed).entries())
    for (const [round, calls] of rounds.entries()) {
      const at = facts.length;
      const id = `session-${seed}-${at}`;
      const stream = pick(2, seed, at) === 0;
      const base = baseBody(client, model, id, stream);
      const ask = questionOf(client, base, asked[question] ?? "base");
      const own = round === 0 ? [] : shuffled(results, seed, at).slice(0, rounds[round - 1]);
      const made = (whole: Json): Json => {
        const { stream: _, ...body } = whole;
        const form = base["stream"] !== undefined && { stream };
        return withMark(client, { ...body, ...form });
      };
      const given = states.map((state) => ({
        value: state.value,
        isDemanded: state.question === question && round > 0,
      }));
      const value = Buffer.from(`state of ${id}`).toString("base64");
      const parts = partsOf(vendor, id, calls, value);
      facts.push({
        id,
        title: `request ${at + 1} of session ${seed}`,
        side: "request",
        stream,
        isQuick: true,
        body: made(withMembers(client, sessionBody(client, base, [ask]), seed)),
        answer: { batches: answerOf(parts) },
        ...(at > 0 && {
          continues: `session-${seed}-${at - 1}`,
          returns: given,
          withAnswer(answer: string, body: Json) {
            const turns = nextTurns(client, answer, id, own, round === 0 ? ask : undefined);
            return turns && made(withTurns(client, body, turns, question === 2 && round === 0));
          },
        }),
      });
      if (parts.some((part) => "state" in part && part.state)) states.push({ question, value });
    }
  return facts;
}

/** A number below `count`. */
function pick(count: number, ...words: readonly unknown[]): number {
  return Number.parseInt(digestText(words.join(" ")), 36) % count;
}

function shuffled<T>(items: readonly T[], ...words: readonly unknown[]): T[] {
  const ranked = items.map((item, at) => ({ item, rank: pick(1_000_000, at, ...words) }));
  return ranked.toSorted((one, other) => one.rank - other.rank).map(({ item }) => item);
}

/** The user's turn of a fact. */
function questionOf(client: Api, base: Json, id: string): Json {
  const edit = editOf(client, id);
  const body = typeof edit === "function" ? edit(base) : base;
  return (body[turnsOf[client]] as Json[]).at(-1) ?? {};
}

function withMembers(client: Api, body: Json, seed: number): Json {
  let whole = merged(body, reasoningMembers[client]);
  let left = 3;
  for (const id of shuffled(members, seed, "members")) {
    const edit = editOf(client, id);
    if (typeof edit !== "object" || left === 0) continue;
    const more = merged(whole, edit);
    if (!isLegal(client, more)) continue;
    whole = more;
    left--;
  }
  return whole;
}

function merged(body: Json, edit: Json): Json {
  const both = Object.entries(edit).map(([name, value]) => {
    const own = body[name];
    return [name, isObject(own) && isObject(value) ? { ...own, ...value } : value];
  });
  return { ...body, ...(Object.fromEntries(both) as Json) };
}

function isLegal(client: Api, body: Json): boolean {
  try {
    readAsVendor(client, client === "gemini" ? { ...body, model: "m", stream: false } : body);
    return true;
  } catch (error) {
    if (error instanceof FailureError) return false;
    throw error;
  }
}

/** The body with these turns at its end. `isRuled`: there is a new rule before the last one, or at the end of the system text. */
function withTurns(client: Api, body: Json, turns: readonly Json[], isRuled: boolean): Json {
  const text = "Answer in German from now on.";
  const all = [...(body[turnsOf[client]] as Json[]), ...turns];
  const whole = { ...body, [turnsOf[client]]: all };
  if (!isRuled) return whole;
  if (client === "messages") return { ...whole, system: [...(body["system"] as Json[]), { type: "text", text }] };
  if (client === "gemini") {
    const { parts } = body["systemInstruction"] as { readonly parts: readonly Json[] };
    return { ...whole, systemInstruction: { parts: [...parts, { text }] } };
  }
  all.splice(-1, 0, { role: client === "ollama" ? "system" : "developer", content: text });
  return whole;
}

/** Anthropic's clients mark the end of the last turn, and no longer that of the turn before. */
function withMark(client: Api, body: Json): Json {
  if (client !== "messages") return body;
  const messages = (body["messages"] as Json[]).map((message, at, { length }) => {
    const { content } = message;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content as Json[]);
    const bare = blocks.map((block): Json => {
      const { cache_control: _, ...rest } = block;
      return rest;
    });
    const last = bare.at(-1);
    if (at === length - 1 && last) bare[bare.length - 1] = { ...last, cache_control: { type: "ephemeral" } };
    return { ...message, content: bare };
  });
  return { ...body, messages };
}

/** An answer of the vendor with this number of calls. `value`: what it demands back. */
function partsOf(vendor: Api, id: string, calls: number, value: string): AnswerPart[] {
  const reasoning = "The user wants the weather.";
  const reasoned: Partial<Record<Api, AnswerPart>> = {
    messages: { reasoning, state: { kind: "signature", value } },
    responses: { reasoning: "", state: { kind: "encrypted", value } },
    ollama: { reasoning },
    gemini: { reasoning },
  };
  const called = Array.from({ length: calls }, (_, at): AnswerPart => ({
    id: `${vendor === "messages" ? "toolu_" : "call_"}${id.replaceAll("-", "")}00000000000${at}`,
    name: weather.name,
    arguments: JSON.stringify({ city: `City ${at}`, days: [1, 2] }),
    ...(vendor === "gemini" && at === 0 && { state: callState(value) }),
  }));
  const text = { text: `${markerOf(id)} ${calls === 0 ? "It rains." : "Let me look."}` };
  return [...(reasoned[vendor] ? [reasoned[vendor]] : []), text, ...called];
}
