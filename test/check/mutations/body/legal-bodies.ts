import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalBody } from "../../legal/body.ts";
import { between, oneOf, seeded } from "../../random.ts";
import type { LegalChange } from "../mutation.ts";
import {
  type BodyDraft,
  bodyDraftOf,
  bodyExchangeOf,
  callsOf,
  choicesOf,
  errorsOf,
  isAnswer,
  type Json,
  messagesOf,
  modelsOf,
  usagesOf,
} from "./body-draft.ts";

/** A change that leaves a legal body legal. `exact`: also in the profile that it was written in. */
interface LegalBodyMutation {
  readonly name: string;
  readonly exact: boolean;
  apply(draft: BodyDraft, random: () => number): boolean;
}

const mutations: readonly LegalBodyMutation[] = [
  {
    name: "members in another order, at every depth",
    exact: false,
    apply(draft, random) {
      draft.value = shuffled(draft.value, random) as Json;
      return true;
    },
  },
  {
    name: "unknown members of choices, calls, counts, models and errors",
    exact: false,
    apply(draft, random) {
      const places = [choicesOf, callsOf, usagesOf, modelsOf, errorsOf].flatMap((objects) => objects(draft));
      for (const place of places) if (random() < 0.5) place[`x_${between(0, 99, random)}`] = { any: ["thing"] };
      for (const place of places.slice(0, 1)) place.x_always = null;
      return places.length > 0;
    },
  },
  {
    name: "a request that may be refused and is not",
    exact: true,
    apply(draft, random) {
      const { request } = draft;
      if (!request || draft.status !== 200) return false;
      // None of these is a demand that the answer could fail.
      if (request.n === undefined) request.n = oneOf([0, -1, "2", null], random);
      request.max_completion_tokens = oneOf([-1, 0.5, "3", null], random);
      if (request.tools === undefined)
        request.tool_choice = oneOf(["required", { type: "function", function: { name: "no_such_tool" } }], random);
      return true;
    },
  },
  {
    name: "other white space",
    exact: false,
    apply(draft, random) {
      draft.layout.indent = oneOf([0, 1, 2, 4, 8], random);
      draft.layout.end = oneOf(["", "\n", "\r\n", "  \n"], random);
      return true;
    },
  },
  {
    name: "escaped letters",
    exact: false,
    apply(draft) {
      draft.rewrite = (body) =>
        body.replace(/[^\0-\x7f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
      return true;
    },
  },
  {
    name: "other ids",
    exact: true,
    apply(draft, random) {
      if (!isAnswer(draft)) return false;
      draft.value.id = `${draft.endpoint === "chat" ? "chatcmpl-" : "cmpl-"}${between(0, 1e9, random)}`;
      for (const [at, call] of callsOf(draft).entries()) call.id = `toolu_${at}`;
      return true;
    },
  },
  {
    name: "another model, time and fingerprint",
    exact: true,
    apply(draft, random) {
      if (!isAnswer(draft)) return false;
      draft.value.model = "gpt-4o-mini-2024-07-18";
      draft.value.created = between(1_600_000_000, 1_900_000_000, random);
      if ("system_fingerprint" in draft.value) draft.value.system_fingerprint = oneOf([null, "fp_0123456789"], random);
      return true;
    },
  },
  {
    name: "no details of the counts",
    exact: false,
    apply(draft) {
      if (!isAnswer(draft)) return false;
      delete (draft.value.usage as Json).prompt_tokens_details;
      return true;
    },
  },
  {
    name: "other words in the text, and none",
    exact: true,
    apply(draft, random) {
      const said = messagesOf(draft).filter((message) => typeof message.content === "string");
      if (said.length === 0 || draft.request?.logprobs === true) return false;
      for (const message of said) message.content = oneOf(["", "Grüße 🦙", '{"a":1}', "null", "\u2028"], random);
      return true;
    },
  },
  {
    name: "an error with other words, a path and a code",
    exact: true,
    apply(draft) {
      if (draft.status !== 400) return false;
      draft.value.error = {
        message: "x: 'y'",
        type: "invalid_request_error",
        param: "tools[0].type",
        code: "invalid_value",
      };
      return true;
    },
  },
  {
    name: "the request is not known",
    exact: true,
    apply(draft) {
      // A named tool explains "stop" next to calls.
      if (typeof draft.request?.tool_choice === "object") return false;
      draft.request = undefined;
      return true;
    },
  },
  {
    name: "the headers are not known",
    exact: true,
    apply(draft) {
      draft.headers = null;
      return true;
    },
  },
  {
    name: "further headers, and a charset",
    exact: false,
    apply(draft) {
      if (draft.headers)
        Object.assign(draft.headers, { "content-type": "application/json; charset=utf-8", via: "1.1 x" });
      return draft.headers !== null;
    },
  },
];

function shuffled(value: unknown, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, random));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => ({ key, member, at: random() }));
  return Object.fromEntries(
    entries.toSorted((a, b) => a.at - b.at).map(({ key, member }) => [key, shuffled(member, random)]),
  );
}

/** Judged with its own profile demanded where the change may not leave it. */
export const legalBodies: readonly LegalChange[] = mutations.map(({ name, exact, apply }) => ({
  name,
  make(seed) {
    const { exchange, profile } = legalBody(seed);
    const draft = bodyDraftOf(exchange);
    if (!apply(draft, seeded(seed))) return undefined;
    return judge(bodyExchangeOf(draft), exact ? profile.name : undefined).findings;
  },
}));
