import type { Dispatcher } from "undici";
import { streamChunks } from "../../wire/apis/sse/stream-chunks.ts";
import type { UpstreamOptions } from "./options.ts";
import type { Transport, TransportAnswer, TransportRequest } from "./transport.ts";

/**
 * Sends requests with `fetch`, for runtimes without sockets (browsers, Workers) or without undici (Bun). Bundlers replace
 * undici-transport.ts by this file (`browser` in package.json). Throws if TLS options are given, which `fetch` does not have.
 */
export function openTransport(origin: string, { tls }: UpstreamOptions): Transport {
  if (tls) throw new Error("TLS options for an upstream need Node: fetch does not support them.");
  const send = ({ method, path, headers, body }: TransportRequest, signal: AbortSignal): Promise<Response> => {
    const init = { method, headers, signal, redirect: "manual" as const, ...(body !== undefined && { body }) };
    // Bun's own time-out would end a long wait for the first event. Other runtimes ignore the member.
    return fetch(origin + path, Object.assign(init, { timeout: false }));
  };
  return {
    sharesTimers: false,
    afterReads: (read) => void Promise.resolve().then(read),
    dispatch(request, handler) {
      const controller = new FetchController();
      void deliver(() => send(request, controller.signal), controller, handler);
    },
    request: async (request) => answerOf(await send(request, request.signal)),
    async pass({ path, body, ...request }) {
      const streamed = body && { body: ReadableStream.from(body), duplex: "half" };
      const answer = answerOf(
        await fetch(origin + path, { ...request, redirect: "manual", ...streamed } as RequestInit),
      );
      const { "content-encoding": _, "content-length": __, ...headers } = answer.headers;
      return { ...answer, headers };
    },
    decoder() {
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      return { write: (bytes) => decoder.decode(bytes, { stream: true }), end: () => decoder.decode() };
    },
    // `fetch` decompresses answers itself.
    unpacker: () => null,
    destroy: async () => {},
  };
}

/** Implements the controller that undici passes to its handlers: pause, resume and abort. */
class FetchController implements Dispatcher.DispatchController {
  readonly #abort = new AbortController();
  #resumed: (() => void) | undefined;
  paused = false;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get aborted(): boolean {
    return this.#abort.signal.aborted;
  }

  get reason(): Error | null {
    return this.aborted ? (this.#abort.signal.reason as Error) : null;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.#resumed?.();
    this.#resumed = undefined;
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
    this.resume();
  }

  /** Resolves when reading is not paused. */
  async ready(): Promise<void> {
    if (this.paused) await new Promise<void>((resolve) => (this.#resumed = resolve));
  }
}

async function deliver(
  send: () => Promise<Response>,
  controller: FetchController,
  handler: Dispatcher.DispatchHandler,
): Promise<void> {
  // undici calls its handlers after `dispatch` has returned.
  await Promise.resolve();
  try {
    handler.onRequestStart?.(controller, {});
    const response = await send();
    const headers = Object.fromEntries(response.headers);
    handler.onResponseStart?.(controller, response.status, headers, response.statusText);
    for await (const bytes of bytesOf(response)) {
      // Only Node has Buffer. The handler uses nothing that Uint8Array lacks.
      handler.onResponseData?.(controller, bytes as Buffer);
      await controller.ready();
      controller.signal.throwIfAborted();
    }
  } catch (error) {
    handler.onResponseError?.(controller, error instanceof Error ? error : new Error(String(error)));
    return;
  }
  handler.onResponseEnd?.(controller, {});
}

function answerOf(response: Response): TransportAnswer {
  const body = bytesOf(response);
  return {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body: Object.assign(body, { dump: () => body.return(undefined) }),
  };
}

/** The bytes of a body; none if there is no body. */
async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array, undefined> {
  if (body) yield* streamChunks(body);
}
