import { canAnswer } from "../core/engine.ts";
import { FailureError } from "../core/failure.ts";
import { readConversation } from "../apis/tokens/read-request.ts";
import { modelAsked, untilGone } from "./model-asked.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { takeSteps } from "./turns.ts";

/** `POST /apply-template`, as llama.cpp's server has it: the prompt that a chat request makes, which is not answered. */
export async function applyTemplate(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await modelAsked(reply, service);
  const options = { profile: reply.profile, forwards: false };
  const request = await takeSteps(readConversation(body, name, reply.requestId, options));
  const { engine } = model.from;
  if (!canAnswer(engine, "apply-template"))
    throw new FailureError({
      kind: "internal",
      message: `The template of '${name}' is not known: only local models can tell.`,
      status: 501,
    });
  const owner = reply.client && { owner: reply.client.owner };
  const meant = { ...request, model: model.engineModel, ...owner };
  const prompt = await untilGone(
    reply,
    engine.ask({ kind: "apply-template", request: meant }, reply.exchange.departure.signal),
  );
  reply.send(200, "application/json", JSON.stringify({ prompt }));
}
