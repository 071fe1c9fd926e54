/** A path as routes have it: without `/v1`, and without what a base URL that ends in a slash makes some clients write. */
export function plainPath(path: string): string {
  return path
    .replace(/\/{2,}/g, "/")
    .replace(/^\/v1(?=\/|$)/, "")
    .replace(/\/$/, "");
}
