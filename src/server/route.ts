import type { HeaderReader, Voice } from "../apis/voice.ts";
import type { Reply } from "./reply.ts";
import type { ObservedApi } from "./request-record.ts";
import type { Service } from "./service.ts";

/** One path of the server. */
export interface Route {
  /** How the path's API speaks of keys and failures; a function where several share the path, and the headers say which is meant. */
  readonly voice: Voice | ((header: HeaderReader) => Voice);
  /** Needs no key. */
  readonly open?: boolean;
  /** Its POSTs are counted and traced as this API's. */
  readonly api?: ObservedApi;
  /** For whoever runs the server: another key than those of clients. */
  readonly admin?: boolean;
  readonly methods: Readonly<Partial<Record<Method, Answer>>>;
}

type Method = "GET" | "POST" | "DELETE";
/** `parameter`: what stands for `{id}` in the path. */
export type Answer = (reply: Reply, service: Service, parameter: string) => Promise<void> | void;
