/**
 * The headers of a stream in profile `lean`, for all APIs: an event stream that is not cached, and that reverse proxies such as nginx do not
 * buffer.
 */
export const unbufferedStream: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};
