import type { GenerationEnd, GenerationEvent } from "../../core/events.ts";
import type { RepairedCapture, RepairOptions } from "../repaired-capture.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { MessageReader } from "./answer-reader.ts";
import { assembledMessage } from "./assembled-message.ts";
import { CaptureWriter, writeCapturedMessage } from "./capture-writer.ts";
import { errorObject } from "./error-object.ts";
import { eventText, padding } from "./event-text.ts";
import { toolUseId } from "./ids.ts";
import type { MessageEvent } from "./message-event.ts";

/** Reads a captured answer of the Messages API, however broken, and writes it anew. */
export function repairMessageCapture(capture: string, options: Omit<RepairOptions, "from">): RepairedCapture {
  const { random, profile } = options;
  const messageEvents: MessageEvent[] = [];
  const reader = new MessageReader(
    { newCallId: () => toolUseId(random), frameLimit: Number.POSITIVE_INFINITY },
    (event) => messageEvents.push(event),
  );
  const isBody = /^\s*\{/.test(capture);
  const events = isBody ? readResponseBody(capture, reader) : [...reader.push(capture), ...reader.end()];
  const end = endOf(events);
  const repairs = reader.repairs.list();
  const failure = "failure" in end ? errorObject(end.failure, null) : undefined;
  if (isBody) {
    const body = failure ? JSON.stringify(failure) : writeCapturedMessage(assembledMessage(messageEvents), options);
    return { body, repairs, end };
  }
  const ending = messageEvents.findLast((event) => event.type === "message_delta");
  const writer = new CaptureWriter(options, ending?.rest["usage"]);
  // The end of a message that failed is the error alone.
  const shown = failure
    ? messageEvents.filter(({ type }) => type !== "message_delta" && type !== "message_stop")
    : messageEvents;
  const text = shown.map((event) => writer.write(event)).join("");
  const last = failure ? eventText("error", JSON.stringify(failure).slice(0, -1), padding(profile, random)) : "";
  return { body: text + last, repairs, end };
}

function endOf(events: readonly GenerationEvent[]): GenerationEnd {
  const last = events.at(-1);
  return last?.type === "end" ? last.end : { kind: "done" };
}
