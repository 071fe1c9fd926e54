import { turnSeal } from "../../wire/apis/turn-seal.ts";
import type { PortCall, PortRoute, ServedPort } from "../../wire/apis/port-state.ts";
import { keyspacesOf, storeFailure, storeOwnerOf } from "./client-stores.ts";
import { ClientGone } from "./exchange.ts";
import { modelNamed, modelsOf } from "./model-directory.ts";
import { readJsonBody } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { askUpstream, countPromptTokens } from "./token-endpoints.ts";
import { inTurns } from "./turns.ts";
import { sendEvents } from "./write-answer.ts";
import { random } from "../../wire/random/random.ts";
import { takeLimits } from "./keys/take-limits.ts";

/** Answers a further path of an API, such as `/responses/{id}/cancel`. */
export async function answerPortRoute(
  port: ServedPort,
  route: PortRoute,
  reply: Reply,
  service: Service,
  parameter: string,
): Promise<void> {
  const isOfItem = route.path.endsWith("{item}");
  const [id = "", item = ""] = isOfItem ? parameter.split("/").map((part) => decodeURIComponent(part)) : [parameter];
  const { exchange, record, requestId } = reply;
  const { client } = reply.caller;
  const owner = await storeOwnerOf(reply);
  const directory = modelsOf(client, service.directory);
  const seal = turnSeal(service.stores.turnKey, client?.owner ?? "");
  const call: PortCall = {
    requestId,
    id,
    item,
    query: (name) => exchange.queries(name)[0],
    queries: (name) => exchange.queries(name),
    get profile() {
      return reply.profile;
    },
    keyspaces: keyspacesOf(service.stores, owner),
    inTurns,
    turnSeal: seal,
    now: () => Math.floor(Date.now() / 1000),
    random,
    async readBody(ifEmpty) {
      await takeLimits(reply, service);
      return readJsonBody(reply, service, ifEmpty);
    },
    readOptions(body) {
      const from = directory.namedIn(body)?.from;
      const profile = reply.useProfile(from?.profile);
      const forwards = from?.forwards?.includes(port.name) ?? false;
      return { profile, forwards, header: (name) => exchange.header(name), turnSeal: seal };
    },
    model(name) {
      record.asked.model = name;
      const model = modelNamed(name, directory, reply.profile);
      return {
        countTokens: (request) => countPromptTokens(model, request, reply, service),
        compact: (request) => askUpstream("compact", model, request, reply, service),
      };
    },
    run: (runId) => service.runs.find(owner, runId),
    hasEnded: (name) => service.processes?.hasEnded(name) ?? false,
    pause: (ms) => pause(ms, exchange.departure.signal),
  };
  const answer = await route.answer(call).catch((error: unknown) => {
    throw error instanceof ClientGone ? error : storeFailure(error);
  });
  if ("body" in answer) reply.send(200, "application/json", answer.body);
  else await sendEvents(reply, answer.events, port.streamHeaders(reply.profile), service.settings.keepAliveMs);
}

/** Resolves after `ms` milliseconds, or when the client leaves; to whether the client is still connected. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
  return !signal.aborted;
}
