import { createServer, type TruewireServer } from "../../src/serve/app/create-server.ts";
import { type Api, roots } from "../../src/judge/between/facts.ts";

/** The vendor is as strict as OpenAI, at another address: this is what Truewire knows of that. */
const openai = {
  contentParts: true,
  customTools: true,
  systemMessages: "anywhere",
  instructionRole: "any",
  reasoningEffort: true,
} as const;

/** Truewire before a vendor of this API, with the model `m`. */
export function startTranslator(vendorUrl: string, api: Api): Promise<TruewireServer> {
  const upstream = {
    kind: "upstream",
    name: "up",
    url: `${vendorUrl}${roots[api]}`,
    api,
    key: "k",
    models: ["m"],
  } as const;
  const models = [{ ...upstream, ...(api === "chat" && { requests: openai }) }];
  return createServer({ port: 0, logLevel: "silent", models });
}
