import type { Parameter } from "./parameter.ts";

/** Loads the table of parameters, which the build writes next to the scripts. Returns no parameters if the server has just stopped. */
export async function loadTable(): Promise<readonly Parameter[]> {
  try {
    const response = await fetch(new URL("parameters.json", import.meta.url));
    return (await response.json()) as readonly Parameter[];
  } catch {
    return [];
  }
}
