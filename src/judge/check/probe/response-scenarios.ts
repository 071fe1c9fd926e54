import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange } from "../rules/exchange.ts";
import { type GroupVerdict, notShown } from "../rules/group/group-rule.ts";
import {
  isRunning,
  judgeBackground,
  judgeCompacted,
  judgeContinued,
  judgeConversation,
  judgeDeleted,
  judgeInputItems,
  judgeNotKept,
  judgeShown,
  judgeContinuedBySocket,
  judgeUnknownBySocket,
} from "../rules/group/stored.ts";
import { lastResponse } from "../rules/responses/response-content.ts";
import { create, earlierAnswer, idOf, onStored, question, story } from "./response-request.ts";
import type { Probe } from "./probe.ts";
import type { Scenario, ScenarioSteps } from "./scenario.ts";
import { isObject } from "../../../wire/core/json.ts";
import { parsedJson } from "../rules/view.ts";
import { SocketLine } from "./socket-line.ts";

/** How long it waits between two questions, in milliseconds. */
const pause = 250;

/** A response in the background, asked for until it has ended. */
export const backgroundResponse: Scenario = {
  id: "responses/background",
  about: "Responses: a response in the background",
  api: "responses",
  async run(steps) {
    const begun = await steps.ask(
      create("background/create", "a response in the background", { input: story, background: true }),
    );
    return [begun ? judgeBackground(begun, await polled(steps, begun)) : notShown("no answer")];
  },
};

async function polled(steps: ScenarioSteps, begun: Exchange): Promise<readonly Exchange[]> {
  const id = idOf(begun);
  if (id === undefined || !isRunning(lastResponse(begun)?.status)) return [];
  const shown: Exchange[] = [];
  const deadline = performance.now() + steps.target.timeout;
  while (performance.now() < deadline) {
    const found = await steps.ask(onStored("GET", "responses", "background/get", "it is shown as it is then", id));
    if (!found) break;
    shown.push(found);
    if (found.response.status !== 200 || !isRunning(lastResponse(found)?.status)) break;
    await sleep(pause, undefined, steps.signal && { signal: steps.signal });
  }
  return shown;
}

const history = [{ type: "message", role: "user", content: story }, earlierAnswer];

/** Compacts a history and continues it. */
export const compactedResponse: Scenario = {
  id: "responses/compact",
  about: "Responses: a history that is compacted",
  api: "responses",
  async run(steps) {
    const compaction = await steps.ask({
      ...create("compact/create", "a history to be compacted", {}),
      endpoint: "response-compaction",
      path: () => "/responses/compact",
      body: (model) => ({ model, input: history }),
    });
    const output = compaction && outputOf(compaction);
    const input = [...(output ?? []), { type: "message", role: "user", content: question }];
    const next =
      output && (await steps.ask(create("compact/continue", "a compacted history continues", { input, store: false })));
    return [compaction ? judgeCompacted(compaction, next) : notShown("no answer")];
  },
};

function outputOf({ response }: Exchange): readonly unknown[] | undefined {
  const value = response.status === 200 ? parsedJson(response.body) : undefined;
  return isObject(value) && Array.isArray(value.output) ? value.output : undefined;
}

/** A response is stored, shown, continued and deleted. */
export const storedResponse: Scenario = {
  id: "responses/stored",
  about: "Responses: a response that is stored",
  api: "responses",
  run: keepAndForget,
};

async function keepAndForget(steps: ScenarioSteps): Promise<readonly GroupVerdict[]> {
  const created = await steps.ask(create("stored/create", "a response that is to be stored", { input: story }));
  const id = idOf(created);
  if (!created || id === undefined) return [notShown("no response was made that could be stored")];
  const continuing = (name: string) =>
    create(`stored/${name}`, "one that continues it", { input: question, previous_response_id: id });
  const found = await steps.ask(onStored("GET", "responses", "stored/get", "it is shown", id));
  const next = await steps.ask(continuing("continue"));
  if (!found || !next) return [notShown("no answer about what was stored")];
  // Many servers keep nothing, which is legal.
  if (found.response.status >= 400 && next.response.status >= 400 && isLacking(found.response.status))
    return [notShown("the server stores no responses: none can be retrieved, continued or deleted")];
  const shown = judgeShown(created, found);
  const continued = judgeContinued(created, next);
  const items = await steps.ask(
    onStored("GET", "response-items", "stored/items", "its input items", `${id}/input_items`),
  );
  const listed = items ? judgeInputItems(story, items) : notShown("no answer about input items");
  const deletion = await steps.ask(onStored("DELETE", "response-deletion", "stored/delete", "it is deleted", id));
  if (!deletion) return [shown, continued, listed, notShown("no answer to a deletion")];
  const gone = await steps.ask(onStored("GET", "responses", "stored/gone", "it is shown after it was deleted", id));
  // Where what was said is forgotten anyway, that says nothing.
  const orphan = continued.findings.length === 0 ? await steps.ask(continuing("orphan")) : undefined;
  const after = [gone, orphan].flatMap((exchange) => exchange ?? []);
  return [shown, continued, listed, judgeDeleted(deletion, after)];
}

function isLacking(status: number): boolean {
  return status === 404 || status === 405 || status === 501;
}

/** Two responses in a conversation, whose items are then listed. */
export const responseConversation: Scenario = {
  id: "responses/conversation",
  about: "Responses: a conversation that the server keeps",
  api: "responses",
  async run(steps) {
    const created = await steps.ask({
      ...create("conversation/create", "a conversation", {}),
      endpoint: "conversation",
      path: () => "/conversations",
      body: () => ({}),
    });
    const id = idOf(created);
    if (id === undefined) return [notShown("the server keeps no conversations")];
    const said = (name: string, input: string): Probe =>
      create(`conversation/${name}`, "a response in it", { input, conversation: id });
    const first = await steps.ask(said("first", story));
    const next = first?.response.status === 200 ? await steps.ask(said("next", question)) : first;
    const items = await steps.ask({
      ...onStored("GET", "response-items", "conversation/items", "its items", ""),
      path: () => `/conversations/${id}/items?order=asc`,
    });
    await steps.ask({
      ...onStored("DELETE", "conversation", "conversation/delete", "it is deleted", ""),
      path: () => `/conversations/${id}`,
    });
    return [first && next ? judgeConversation(story, first, next, items) : notShown("no answer in a conversation")];
  },
};

/** A response with `store: false` leaves nothing. */
export const unstoredResponse: Scenario = {
  id: "responses/unstored",
  about: "Responses: a response that must not be stored",
  api: "responses",
  async run(steps) {
    const created = await steps.ask(
      create("unstored/create", "a response with store: false", { input: story, store: false }),
    );
    const id = idOf(created);
    const found =
      id === undefined ? undefined : await steps.ask(onStored("GET", "responses", "unstored/get", "it is shown", id));
    return [found ? judgeNotKept(found) : notShown("no response was made that could be looked for")];
  },
};

/** Responses by WebSocket, one after the other on one connection, where that is offered. */
export const responseSocket: Scenario = {
  id: "responses/socket",
  about: "Responses: by WebSocket",
  api: "responses",
  async run(steps) {
    const line = await SocketLine.open(steps.target);
    if (!(line instanceof SocketLine)) return [notShown(`no WebSocket is offered (${line.refused})`)];
    try {
      return await converse(line, steps);
    } finally {
      line.close();
    }
  },
};

async function converse(line: SocketLine, steps: ScenarioSteps): Promise<readonly GroupVerdict[]> {
  const ask = async (id: string, about: string, members: Readonly<Record<string, unknown>>) => {
    const probe = create(`socket/${id}`, about, members);
    const begun = performance.now();
    const { model, refused } = steps.target;
    const send = () => line.ask(refused.adapted("responses", probe.body?.(model) ?? {}));
    let exchange = await send();
    if (exchange && refused.learn(exchange)) exchange = await send();
    if (exchange) steps.note({ probe, exchange, milliseconds: performance.now() - begun });
    return exchange;
  };
  const first = await ask("first", "a response by WebSocket", { input: story, store: false });
  if (!first || lastIdOf(first) === undefined) return [notShown("no response came by WebSocket")];
  const next = await ask("continue", "one that continues it", {
    input: question,
    store: false,
    previous_response_id: lastIdOf(first),
  });
  const unknown = await ask("unknown", "one that continues what never was", {
    input: question,
    store: false,
    previous_response_id: `resp_${"0".repeat(49)}`,
  });
  return [
    next ? judgeContinuedBySocket(first, next) : notShown("no second answer by WebSocket"),
    unknown ? judgeUnknownBySocket(unknown) : notShown("no answer to an unknown id"),
  ];
}

function lastIdOf(exchange: Exchange): unknown {
  return lastResponse(exchange)?.id;
}
