import { standsFor } from "../model-directory.ts";
import type { ModelDirectory } from "../model-directory.ts";
import type { Client } from "./client.ts";

/** The models that a client sees: any other is to it as one that does not exist. */
export type ModelView = Pick<ModelDirectory, "find" | "namedIn" | "list" | "mayCome">;

/** `client`: undefined where nobody needs a key. */
export function modelsOf(client: Client | undefined, directory: ModelDirectory): ModelView {
  const allowed = client?.models;
  if (!allowed) return directory;
  const may = (name: string): boolean => allowed.some((pattern) => standsFor(pattern, name));
  return {
    find: (name) => (may(name) ? directory.find(name) : undefined),
    namedIn(body) {
      const name = typeof body === "object" && body !== null && "model" in body ? body.model : undefined;
      return typeof name === "string" && may(name) ? directory.find(name) : undefined;
    },
    mayCome: (name) => may(name) && directory.mayCome(name),
    list: () => directory.list().filter(({ info }) => may(info.id)),
  };
}
