import type { HostedToolExecutors } from "../../../wire/core/hosted-tool.ts";
import { matchesAlias } from "../model-directory.ts";
import type { Client } from "./key-ring.ts";

/** What runs hosted tools for a client: others than those of its key are as if they were not configured. `client`: undefined if no key is required. */
export function hostedToolsOf(
  client: Client | undefined,
  executors: HostedToolExecutors | undefined,
): HostedToolExecutors | undefined {
  const allowed = client?.hostedTools;
  if (!allowed || !executors) return executors;
  return {
    find(tool) {
      const executor = executors.find(tool);
      return executor && allowed.some((pattern) => matchesAlias(pattern, executor.name)) ? executor : undefined;
    },
  };
}
