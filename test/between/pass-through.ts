import { listen } from "../support/listen.ts";
import { request as send } from "undici";

/** How a gateway changes what it passes on. Each function gets text as it came, and returns what is sent in its place. */
export interface Mutation {
  readonly request?: (body: Record<string, unknown>) => unknown;
  readonly requestText?: (text: string) => string;
  readonly requestHeaders?: (headers: Record<string, string>) => Record<string, string>;
  readonly status?: (status: number) => number;
  readonly answerHeaders?: (headers: Record<string, string>) => Record<string, string>;
  /** Gets the whole answer, which is then sent at once. */
  readonly answer?: (text: string, isStream: boolean) => string;
  /** What is sent if the vendor's connection breaks; default: the connection to the client breaks, too. */
  readonly ending?: string;
  readonly readsOn?: boolean;
}

/** A gateway before a vendor, that changes nothing but what the mutation says. */
export async function startPassThrough(vendorUrl: () => string, mutation: Mutation = {}) {
  return listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => void pass(Buffer.concat(chunks).toString()).catch(() => response.destroy()));
    const pass = async (text: string): Promise<void> => {
      const gone = new AbortController();
      response.on("close", () => {
        if (!response.writableFinished && mutation.readsOn !== true) gone.abort();
      });
      const { host: _, connection: __, "content-length": ___, ...headers } = request.headers as Record<string, string>;
      const changed = mutation.request
        ? JSON.stringify(mutation.request(JSON.parse(text) as Record<string, unknown>))
        : text;
      const answer = await send(new URL(request.url ?? "/", vendorUrl()), {
        method: "POST",
        headers: mutation.requestHeaders?.(headers) ?? headers,
        body: mutation.requestText?.(changed) ?? changed,
        signal: gone.signal,
      });
      const {
        "transfer-encoding": ____,
        connection: _____,
        "content-length": ______,
        ...received
      } = answer.headers as Record<string, string>;
      const isStream = String(received["content-type"]).includes("event-stream");
      response.writeHead(
        mutation.status?.(answer.statusCode) ?? answer.statusCode,
        mutation.answerHeaders?.(received) ?? received,
      );
      response.flushHeaders();
      let whole = "";
      try {
        for await (const chunk of answer.body as AsyncIterable<Buffer>) {
          whole += chunk.toString();
          if (!mutation.answer) response.write(chunk);
        }
      } catch (error) {
        if (mutation.ending === undefined) throw error;
        response.end((mutation.answer?.(whole, isStream) ?? "") + mutation.ending);
        return;
      }
      response.end(mutation.answer?.(whole, isStream));
    };
  });
}
