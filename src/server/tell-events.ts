import type { HeaderFields } from "./exchange.ts";
import type { Reply } from "./reply.ts";

/** A stream without an event is opened after this time, in milliseconds; what fails before that is answered as an error. */
const openAfterMs = 500;

/** Sends events that come from elsewhere than this request's engine, and a comment after each `keepAliveMs` of silence. */
export async function tellEvents(
  reply: Reply,
  events: AsyncIterable<string>,
  headers: HeaderFields,
  keepAliveMs: number,
): Promise<void> {
  const { exchange } = reply;
  const { signal } = exchange.departure;
  const iterator = events[Symbol.asyncIterator]();
  const left = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  let timer: ReturnType<typeof setInterval> | undefined;
  const opening = setTimeout(() => {
    if (!reply.sent && !signal.aborted) reply.open(headers);
  }, openAfterMs);
  try {
    while (!signal.aborted) {
      timer = setInterval(() => {
        if (!reply.sent) reply.open(headers);
        void exchange.write(": keep-alive\n\n");
      }, keepAliveMs);
      const step = await Promise.race([iterator.next(), left]);
      clearInterval(timer);
      if (step === undefined || step.done === true) break;
      if (!reply.sent) reply.open(headers);
      await exchange.write(step.value);
    }
    if (!reply.sent) reply.open(headers);
    exchange.end("");
  } finally {
    clearTimeout(opening);
    clearInterval(timer);
    void iterator.return?.();
  }
}
