import type { Exchange } from "../rules/exchange.ts";
import { type GroupVerdict, notShown } from "../rules/group/group-rule.ts";
import { judgeContinuedBySocket, judgeUnknownBySocket } from "../rules/group/stored.ts";
import { lastResponse } from "../rules/responses/response-content.ts";
import { create, question, story } from "./response-request.ts";
import type { Scenario, ScenarioSteps } from "./scenario.ts";
import { SocketLine } from "./socket-line.ts";

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
  if (!first || idOf(first) === undefined) return [notShown("no response came by WebSocket")];
  const next = await ask("continue", "one that continues it", {
    input: question,
    store: false,
    previous_response_id: idOf(first),
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

function idOf(exchange: Exchange): unknown {
  return lastResponse(exchange)?.id;
}
