import type { InspectedRequestList, RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { AdminRefusal, askAdmin, adminKey, readEvents } from "../api/call-api.ts";
import { Changing } from "../parts/changing.ts";

/** How long to wait before a server is asked again that does not answer. In milliseconds. */
const againMs = 1500;
/** Maximum number of listed requests; the server keeps fewer. */
const maxListed = 20_000;

/** The latest requests of the server, updated while the view is shown. */
export class LastRequests extends Changing {
  state: "asking" | "on" | "off" | "key-needed" | "key-refused" | "waiting" = "asking";
  /** Why there is nothing to see, in the server's words. */
  message = "";
  #byId = new Map<string, RequestSummary>();
  #all: readonly RequestSummary[] | undefined;
  #looking: AbortController | undefined;

  /** The newest first. */
  get all(): readonly RequestSummary[] {
    return (this.#all ??= [...this.#byId.values()].reverse());
  }

  find(id: string): RequestSummary | undefined {
    return this.#byId.get(id);
  }

  /** Looks until the returned function is called. */
  look(): () => void {
    this.#looking?.abort();
    const looking = (this.#looking = new AbortController());
    void this.#follow(looking.signal);
    return () => looking.abort();
  }

  /** Drops all requests that the server keeps. */
  async clear(): Promise<void> {
    await askAdmin("requests", { method: "DELETE" }).catch((error: unknown) => {
      if (!(error instanceof AdminRefusal)) return;
      this.#refused(error);
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#listen(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof AdminRefusal && error.status < 500) return this.#refused(error);
        this.#become("waiting", error instanceof AdminRefusal ? error.message : "The server does not answer.");
      }
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }

  /** Returns when the server ends its list of changes. */
  async #listen(signal: AbortSignal): Promise<void> {
    // First to listen, then to ask what there is: so nothing is missed between the two.
    const changes = await askAdmin("requests/live", { signal });
    const list = (await (await askAdmin("requests", { signal })).json()) as InspectedRequestList;
    this.#byId = new Map(list.requests.map((summary) => [summary.id, summary]));
    this.#become("on", "");
    for await (const event of readEvents(changes)) {
      const change = event as RequestSummary | { readonly cleared: number };
      if ("cleared" in change) this.#byId.clear();
      else this.#byId.set(change.id, change);
      for (const id of this.#byId.keys()) {
        if (this.#byId.size <= maxListed) break;
        this.#byId.delete(id);
      }
      this.#all = undefined;
      this.changed();
    }
  }

  #refused({ status, message }: AdminRefusal): void {
    if (status === 401) this.#become(adminKey.value === "" ? "key-needed" : "key-refused", message);
    else this.#become("off", message);
  }

  #become(state: LastRequests["state"], message: string): void {
    this.state = state;
    this.message = message;
    this.#all = undefined;
    this.changed();
  }
}
