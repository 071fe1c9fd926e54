import { FailureError } from "../../core/failure.ts";
import type { Mask } from "../mask.ts";
import { readJson } from "../read-json.ts";
import type { Reply } from "../reply.ts";
import type { Service } from "../service.ts";
import { tellEvents } from "../tell-events.ts";
import { eventHeaders, eventText } from "./event-text.ts";
import { failureEvent } from "./failure-event.ts";
import { readCheck } from "./read-check.ts";

/** `POST /admin/check`: checks another server, and tells what each probe shows as it comes. It ends when its client leaves. */
export async function checkServer(reply: Reply, service: Service): Promise<void> {
  const { checker, settings } = service;
  if (!checker)
    throw new FailureError({
      message: "Only a server of `truewire serve` or `createServer` checks others.",
      status: 404,
      kind: "not-found",
    });
  const { value } = await readJson(reply, service);
  const asked = readCheck(value);
  const events = checker.check(asked, reply.exchange.departure.signal);
  await tellEvents(reply, textsOf(events, reply, settings.mask), eventHeaders, settings.keepAliveMs);
}

/** What fails at once has a status of its own. */
async function* textsOf(events: AsyncIterable<object>, reply: Reply, mask: Mask): AsyncGenerator<string> {
  try {
    for await (const event of events) yield eventText(event);
  } catch (error) {
    if (!reply.sent) throw error;
    yield eventText(failureEvent(reply, mask, error));
  }
}
