import { modelNotFound } from "../apis/failures.ts";
import type { CalledModel, PortCall, PortRoute, ServedPort } from "../apis/port-state.ts";
import { tokensOf } from "./token-endpoints.ts";
import { ClientGone } from "./exchange.ts";
import { modelsOf } from "./model-directory.ts";
import type { ModelView } from "./model-directory.ts";
import { takeTurn } from "./keys/take-turn.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { storeOwnerOf, shelvesOf, storeFailure } from "./assembled-texts.ts";
import { unknownModel } from "./unknown-model.ts";
import { takeSteps } from "./turns.ts";
import { tellEvents } from "./write-answer.ts";

/** Answers a further path of an API. `id`: what stands for `{id}` in it. */
export async function answerPortRoute(
  port: ServedPort,
  route: PortRoute,
  reply: Reply,
  service: Service,
  id: string,
): Promise<void> {
  const { exchange } = reply;
  const key = port.voice.keyIn((name) => exchange.header(name));
  const owner = await storeOwnerOf(reply.client, key);
  const directory = modelsOf(reply.client, service.directory);
  const call: PortCall = {
    requestId: reply.requestId,
    id,
    query: (name) => exchange.query(name),
    get profile() {
      return reply.profile;
    },
    shelves: shelvesOf(service, owner),
    inTurns: takeSteps,
    now: () => Math.floor(Date.now() / 1000),
    random: Math.random,
    async readBody() {
      if (reply.client?.limits) await takeTurn(reply, service, 0);
      const received = await readJson(reply, service);
      reply.record.received(received);
      return received.value;
    },
    readOptions(body) {
      const from = directory.namedIn(body)?.from;
      const profile = reply.useProfile(from?.profile);
      const forwards = from?.forwards?.includes(port.name) ?? false;
      return { profile, forwards, header: (name) => exchange.header(name) };
    },
    model: (name) => calledModel(name, reply, directory),
    run: (runId) => service.runs.find(owner, runId),
    hasEnded: (name) => service.processes?.hasEnded(name) ?? false,
    pause: (ms) => pause(ms, reply),
  };
  const answer = await route.answer(call).catch((error: unknown) => {
    throw error instanceof ClientGone ? error : storeFailure(error);
  });
  if ("body" in answer) reply.send(200, "application/json", answer.body);
  else await tellEvents(reply, answer.events, port.streamHeaders(reply.profile), service.settings.keepAliveMs);
}

function calledModel(name: string, reply: Reply, directory: ModelView): CalledModel {
  const { record, profile } = reply;
  record.model = name;
  const model = directory.find(name);
  if (!model) {
    const known = profile.listsModels ? directory.list() : [];
    const ids = known.map(({ info }) => info.id);
    throw unknownModel(name, directory, modelNotFound(name, ids));
  }
  return {
    countTokens: (request) => tokensOf(model, request, reply),
  };
}

async function pause(ms: number, { exchange }: Reply): Promise<boolean> {
  const { signal } = exchange.departure;
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
