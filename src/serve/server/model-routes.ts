import { conversationKey } from "../../wire/core/conversation-key.ts";
import { Digest } from "../../wire/core/digest.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { matchesAlias } from "./model-directory.ts";
import type { ModelView } from "./model-directory.ts";

/** A rule that gives requests to another model than the one that they name. All of its conditions, which are patterns, must hold. */
export interface ModelRoute {
  readonly name?: string | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly agent?: string | undefined;
  readonly header?: Readonly<Record<string, string>> | undefined;
  /** A name that clients use. */
  readonly to: string;
  /** Of the conversations, from 0 to 1. */
  readonly share?: number | undefined;
}

/** What rules see of a request before its body is read. */
export interface RoutedRequest {
  /** As the client names the model; undefined: it names none. */
  readonly model: string | undefined;
  /** The name of the client's key. */
  readonly key: string | undefined;
  header(name: string): string | undefined;
  /** The endpoint that the model must have; undefined: any. */
  readonly endpoint: ModelInfo["endpoints"][number] | undefined;
}

/** A rule that may take a request. */
export type NamedRoute = ModelRoute & { readonly name: string };

/**
 * The rules of a configuration. The first one whose conditions hold decides, and its model is final: rules are not applied to the outcome
 * of a rule, so there are no loops.
 */
export class ModelRoutes {
  readonly #routes: readonly NamedRoute[];

  constructor(routes: readonly ModelRoute[] = []) {
    this.#routes = routes.map((route, at) => ({ ...route, name: route.name ?? `rule-${at + 1}` }));
  }

  /**
   * Returns the rules that may take a request, in order: those with a share, up to the first one without. A client must be permitted to use
   * the model that it names and the one that it gets; for others the rule does not exist.
   */
  candidates(request: RoutedRequest, models: ModelView): readonly NamedRoute[] {
    const { model } = request;
    if (this.#routes.length === 0 || (model !== undefined && !models.permits(model))) return [];
    const found: NamedRoute[] = [];
    for (const route of this.#routes) {
      if (!models.permits(route.to) || !holds(route, request)) continue;
      const endpoints = models.find(route.to)?.info.endpoints;
      if (request.endpoint !== undefined && endpoints?.includes(request.endpoint) === false) continue;
      found.push(route);
      if (route.share === undefined) break;
    }
    return found;
  }

  /** The models that rules name, with the place of each. */
  get targets(): readonly (readonly [at: number, model: string])[] {
    return this.#routes.map(({ to }, at) => [at, to]);
  }
}

function holds({ model, key, agent, header = {} }: ModelRoute, request: RoutedRequest): boolean {
  const matches = (pattern: string | undefined, value: string | undefined): boolean =>
    pattern === undefined || (value !== undefined && matchesAlias(pattern, value));
  return (
    matches(model, request.model) &&
    matches(key, request.key) &&
    (agent === undefined || matches(agent, productOf(request.header("user-agent")))) &&
    Object.entries(header).every(([name, pattern]) => matches(pattern, request.header(name.toLowerCase())))
  );
}

/** The first product in the header `user-agent`, such as `claude-cli/2.1.330` or `OpenAI/Python 2.1.0`. */
export function productOf(userAgent: string | undefined): string | undefined {
  return /^[^\s()]{1,60}(?: \d[\w.-]{0,20})?/.exec(userAgent ?? "")?.[0];
}

/**
 * Returns the rule that takes a conversation. Its identity is that of key pools and of `balance: prefix`: instances agree, and a share that
 * grows moves only conversations that join it. `conversation`: undefined for requests that have none, such as those for embeddings.
 */
export function routeOfConversation(
  routes: readonly NamedRoute[],
  conversation: GenerationRequest | undefined,
): NamedRoute | undefined {
  const key = conversation && conversationKey(conversation);
  return routes.find(({ name, to, share }) => {
    if (share === undefined) return true;
    if (key === undefined) return false;
    const [half = ""] = new Digest().add(key).add(`${name} ${to}`).value.split("-");
    return Number.parseInt(half, 36) < share * 2 ** 32;
  });
}
