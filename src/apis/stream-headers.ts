/**
 * The headers of a stream in profile `lean`, whatever the API: an event stream that nobody caches, and that reverse proxies of nginx's
 * kind do not hold back.
 */
export const unbufferedStream: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};
