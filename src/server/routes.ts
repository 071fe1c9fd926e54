import { chatEndpoint } from "../wire/chat/endpoint.ts";
import { completionsEndpoint } from "../wire/completions/endpoint.ts";
import { modelDoesNotExist } from "../wire/failures.ts";
import { writeModel, writeModelList } from "../wire/models/write-models.ts";
import { embed } from "./embed.ts";
import { generate } from "./generate.ts";
import { answerHealth } from "./health.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { answerWelcome } from "./welcome.ts";

/** One path of the API. */
export interface Route {
  readonly method: "GET" | "POST";
  /** Open to clients without a key. */
  readonly open?: boolean;
  answer(reply: Reply, service: Service, parameter: string): Promise<void> | void;
}

/** Every path, with and without `/v1` before it; one that ends in `/` takes the rest of the path as its parameter. */
const routes: Readonly<Record<string, Route>> = {
  "/chat/completions": {
    method: "POST",
    answer: (reply, service) => generate(chatEndpoint, reply, service),
  },
  "/completions": {
    method: "POST",
    answer: (reply, service) => generate(completionsEndpoint, reply, service),
  },
  "/embeddings": { method: "POST", answer: embed },
  "/models": {
    method: "GET",
    answer(reply, { directory }) {
      const models = directory.list().map(({ info }) => info);
      reply.send(200, "application/json", writeModelList(models, reply.profile));
    },
  },
  "/models/": {
    method: "GET",
    answer(reply, { directory }, name) {
      const model = directory.find(name);
      if (!model) throw modelDoesNotExist(name);
      reply.send(200, "application/json", writeModel(model.info, reply.useProfile(model.from.profile)));
    },
  },
  "/health": { method: "GET", open: true, answer: answerHealth },
  "": { method: "GET", open: true, answer: answerWelcome },
};

/** The route of a path, and what its parameter is there; undefined when there is none. */
export function routeOf(path: string): { readonly route: Route; readonly parameter: string } | undefined {
  const plain = path === "/v1/chat/completions" ? "/chat/completions" : plainPath(path);
  if (Object.hasOwn(routes, plain)) {
    const route = routes[plain];
    if (route) return { route, parameter: "" };
  }
  const slash = plain.indexOf("/", 1) + 1;
  const prefix = plain.slice(0, slash);
  const route = slash > 0 && Object.hasOwn(routes, prefix) ? routes[prefix] : undefined;
  return route && { route, parameter: decoded(plain.slice(slash)) };
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
