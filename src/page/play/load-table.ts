import type { Parameter } from "./parameter.ts";

/** The table of parameters, which the build has put beside the scripts. Without it (the server has just stopped), there are none. */
export async function loadTable(): Promise<readonly Parameter[]> {
  try {
    const response = await fetch(new URL("parameters.json", import.meta.url));
    return (await response.json()) as readonly Parameter[];
  } catch {
    return [];
  }
}
