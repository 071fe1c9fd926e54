import type { Endpoint } from "../wire/endpoint.ts";
import type { Profile } from "../wire/profile.ts";
import type { HeaderFields } from "./exchange.ts";

/** Reverse proxies of nginx's kind hold streams back unless they are told not to. */
const unbuffered = { "x-accel-buffering": "no" };

const lean: HeaderFields = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  ...unbuffered,
};

const openai: Record<Endpoint["name"], HeaderFields> = {
  chat: { "content-type": "text/event-stream; charset=utf-8", ...unbuffered },
  completions: { "content-type": "text/event-stream", "cache-control": "no-cache, must-revalidate", ...unbuffered },
};

/** The headers that a stream's form decides, as OpenAI sends them (requirement W12; in profile `openai`, recordings of 2025 and 2026). */
export function streamHeaders(endpoint: Endpoint["name"], profile: Profile): HeaderFields {
  return profile.name === "lean" ? lean : openai[endpoint];
}
