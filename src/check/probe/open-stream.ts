import { request as httpRequest } from "undici";
import type { Probe } from "./probe.ts";
import { requestHeaders } from "./request-headers.ts";
import type { ProbeTarget } from "./send.ts";

export interface OpenStream {
  ended(): boolean;
  /** From the request to the end of the answer, or to now. */
  milliseconds(): number;
  leave(): void;
}

/** Opens the stream of a probe and resolves with its first bytes; undefined when it could not be opened. */
export async function openStream(
  probe: Probe,
  target: ProbeTarget,
  signal?: AbortSignal,
): Promise<OpenStream | undefined> {
  const { url, key, model, timeout, refused } = target;
  const body = refused.adapted(probe.endpoint, probe.body?.(model) ?? {});
  const started = performance.now();
  const gone = new AbortController();
  const limit = AbortSignal.timeout(timeout);
  try {
    const response = await httpRequest(url + probe.path(model), {
      method: "POST",
      headers: { "content-type": "application/json", ...requestHeaders(probe, key) },
      body: JSON.stringify(body),
      signal: AbortSignal.any([gone.signal, limit, ...(signal ? [signal] : [])]),
    });
    if (response.statusCode !== 200) {
      const answer = { status: response.statusCode, headers: null, body: await response.body.text(), complete: true };
      const request = { method: "POST", path: probe.path(model), body };
      const isLearned = refused.learn({ endpoint: probe.endpoint, request, response: answer });
      return isLearned ? await openStream(probe, target, signal) : undefined;
    }
    let end: number | undefined;
    const begun = new Promise<void>((resolve) => {
      response.body.on("data", () => resolve());
      response.body
        .on("end", () => {
          end = performance.now();
          resolve();
        })
        .on("error", () => resolve());
    });
    await begun;
    return {
      ended: () => end !== undefined,
      milliseconds: () => (end ?? performance.now()) - started,
      leave: () => gone.abort(),
    };
  } catch {
    return undefined;
  }
}
