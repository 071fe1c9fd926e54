import type { HostedToolExecutors } from "../../../wire/core/hosted-tool.ts";
import { matchesAlias } from "../model-directory.ts";
import type { Client } from "./key-ring.ts";

/** Returns the executors that a client's key allows. `client`: undefined if no key is required. */
export function hostedToolsOf(
  client: Client | undefined,
  executors: HostedToolExecutors | undefined,
): HostedToolExecutors | undefined {
  const allowed = client?.hostedTools;
  if (!allowed || !executors) return executors;
  const allows = (name: string): boolean => allowed.some((pattern) => matchesAlias(pattern, name));
  return {
    names: executors.names.filter(allows),
    find(tool) {
      const executor = executors.find(tool);
      return executor && allows(executor.name) ? executor : undefined;
    },
  };
}
