import type { HostedToolOptions } from "./hosted-tool.ts";

/** What a user's tool gets. */
export interface HostedProgramInput {
  /** The tool's type in the API: `code_interpreter`, `file_search`, `web_search`. */
  readonly tool: string;
  /** The arguments of the model: of `web_search` and `file_search` a `query`, of `code_interpreter` a `code`; not validated. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** What the client asks of the tool: domains, the user's location, stores of files. */
  readonly options: HostedToolOptions;
  /** The tool as the client declared it. */
  readonly declaration: Readonly<Record<string, unknown>>;
  /** Aborts when the client has left, or when the time of the call is over. */
  readonly signal: AbortSignal;
}

/**
 * A user's function that runs a hosted tool. It returns, or resolves with, for `web_search` a list of `{ url, title, text, age }`, for
 * `file_search` a list of `{ fileId, filename, score, text }`, for `code_interpreter` `{ stdout, stderr, returnCode, images }` or a text,
 * and for other tools a text or an object. What it throws is the tool's error, which the model reads.
 *
 * A module may also export `description` and `parameters`, a JSON schema: what the model is told of the tool.
 */
export type HostedProgram = (input: HostedProgramInput) => unknown;
