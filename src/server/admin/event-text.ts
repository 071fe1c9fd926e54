import type { HeaderFields } from "../exchange.ts";

/** Of the event streams of the admin API. */
export const eventHeaders: HeaderFields = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
};

export function eventText(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}
