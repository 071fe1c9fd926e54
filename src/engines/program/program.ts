import type { Program, ProgramOffer } from "../../wire/apis/chat/program.ts";

/**
 * Returns the program, typed, with the features that it offers beyond text.
 *
 * @example
 * import { defineProgram } from "truewire";
 *
 * const echo = defineProgram(async function* ({ messages }) {
 *   for (const { content } of messages) yield String(content);
 * });
 * for await (const text of echo({ messages: [{ role: "user", content: "Hi" }] })) console.log(text);
 * // → Hi
 */
export function defineProgram<P extends Program>(program: P, offers: readonly ProgramOffer[] = []): P {
  return offers.length === 0 ? program : Object.assign(program, { offers });
}

/**
 * Thrown by a program for a request that it cannot serve: the client gets this status and message instead of a 500. Clients retry after
 * 408, 409, 429 and any status from 500 on. Recognized by its name, so that a program may use its own copy of this package.
 *
 * @example
 * import { RequestError } from "truewire";
 *
 * const error = new RequestError("One question at a time, please.", { param: "messages" });
 * console.log(error.status, error.param);
 * // → 400 messages
 */
export class RequestError extends Error {
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null;

  constructor(message: string, options: { status?: number; param?: string; code?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RequestError";
    this.status = options.status ?? 400;
    this.param = options.param ?? null;
    this.code = options.code ?? null;
  }
}
