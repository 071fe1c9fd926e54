/** A server of another project, which is installed and started on this machine. */
export interface RealServer {
  /** As files and the command line name it. */
  readonly id: string;
  /** As people call it. */
  readonly name: string;
  /** Where it comes from, such as `pip litellm[proxy]`. */
  readonly from: string;
  /** It installs within two minutes, so that CI has it. */
  readonly isQuick?: boolean;
  /** The server whose model it serves, by id, where it is a gateway. */
  readonly over?: string;
  /** Its list of models is empty, or it has none: they are named on the command line. */
  readonly listsNoModels?: boolean;
  /** It ignores `tool_choice`: whether a tool is called is up to the model. */
  readonly demandsNoCalls?: boolean;
  /** The APIs that it speaks, of those that Truewire reads. */
  readonly apis: readonly ("chat" | "responses" | "messages" | "ollama")[];
  /** Returns the installed version; undefined: it is not installed. */
  version(): string | undefined;
  /** Installs it. Rejects with the reason where that is not possible. */
  install(): Promise<void>;
  /** Starts it on the port, and resolves when it answers. `upstream`: of the server that it serves (`over`). */
  start(port: number, upstream?: StartedServer): Promise<StartedServer>;
}

export interface StartedServer {
  /** Without `/v1`. */
  readonly url: string;
  /** The name of its model. */
  readonly model: string;
  /** Tokens of the prompt and the answer together. */
  readonly contextSize: number;
  /** Ends it, at once with SIGKILL. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}
