/** A path without the keys that some servers take in the query: recordings are given to others. */
export function maskedPath(path: string): string {
  return path.replace(/([?&](?:api[-_]?key|key|access_token|token)=)[^&#]*/gi, "$1[key]");
}
