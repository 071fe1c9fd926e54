import { modelDoesNotExist } from "../wire/failures.ts";
import { writeModel, writeModelList } from "../wire/models/write-models.ts";
import { openaiVoice } from "../wire/openai-voice.ts";
import { ports } from "../wire/ports.ts";
import type { Port } from "../wire/port.ts";
import type { HeaderReader, Voice } from "../wire/voice.ts";
import { countTokens } from "./count-tokens.ts";
import { embed } from "./embed.ts";
import { generate } from "./generate.ts";
import { answerHealth, answerLiveness } from "./health.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { answerWelcome } from "./welcome.ts";

/** One path of the server. */
export interface Route {
  readonly method: "GET" | "POST";
  /** How the path's API speaks of keys and failures; a function where several share the path, and the headers say which is meant. */
  readonly voice: Voice | ((header: HeaderReader) => Voice);
  /** Needs no key. */
  readonly open?: boolean;
  answer(reply: Reply, service: Service, parameter: string): Promise<void> | void;
}

/** Every path, with and without `/v1` before it; one that ends in `/` takes the rest of the path as its parameter. */
const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  ...ports.flatMap(routesOf),
  ["/embeddings", { method: "POST", voice: openaiVoice, answer: embed }],
  [
    "/models",
    {
      method: "GET",
      voice: listingVoice,
      answer(reply, { directory }) {
        const models = directory.list().map(({ info }) => info);
        reply.send(200, "application/json", reply.voice.models?.list(models) ?? writeModelList(models, reply.profile));
      },
    },
  ],
  [
    "/models/",
    {
      method: "GET",
      voice: listingVoice,
      answer(reply, { directory }, name) {
        const model = directory.find(name);
        if (!model) throw modelDoesNotExist(name);
        const profile = reply.useProfile(model.from.profile);
        reply.send(200, "application/json", reply.voice.models?.one(model.info) ?? writeModel(model.info, profile));
      },
    },
  ],
  ["/health", { method: "GET", voice: openaiVoice, open: true, answer: answerHealth }],
  ["/health/live", { method: "GET", voice: openaiVoice, open: true, answer: answerLiveness }],
  ["", { method: "GET", voice: openaiVoice, open: true, answer: answerWelcome }],
]);

/** The paths of an API. */
function routesOf(port: Port): [string, Route][] {
  const { path, voice, tokenCounter, probePath } = port;
  const found: [string, Route][] = [
    [path, { method: "POST", voice, answer: (reply, service) => generate(port, reply, service) }],
  ];
  if (tokenCounter)
    found.push([
      tokenCounter.path,
      { method: "POST", voice, answer: (reply, service) => countTokens(port.name, tokenCounter, reply, service) },
    ]);
  if (probePath !== undefined) found.push([probePath, { method: "GET", voice, open: true, answer: answerWelcome }]);
  return found;
}

/** The API whose list of models is meant; OpenAI's, where the headers do not say. */
function listingVoice(header: HeaderReader): Voice {
  return ports.find(({ voice }) => voice.models?.isMeant(header) === true)?.voice ?? openaiVoice;
}

/** The route of a path, and what its parameter is there; undefined when there is none. */
export function routeOf(path: string): { readonly route: Route; readonly parameter: string } | undefined {
  const plain = path === "/v1/chat/completions" ? "/chat/completions" : plainPath(path);
  const route = routes.get(plain);
  if (route) return { route, parameter: "" };
  const slash = plain.indexOf("/", 1) + 1;
  const below = slash > 0 ? routes.get(plain.slice(0, slash)) : undefined;
  return below && { route: below, parameter: decoded(plain.slice(slash)) };
}

/** Without `/v1`, and without what a base URL that ends in a slash makes some clients write. */
function plainPath(path: string): string {
  return path
    .replace(/\/{2,}/g, "/")
    .replace(/^\/v1(?=\/|$)/, "")
    .replace(/\/$/, "");
}

/** Percent-decoded; as it is where that is impossible. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
