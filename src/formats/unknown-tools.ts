/** The log message about calls that stayed text because the request does not have these tools, or null if there were none. */
export function unknownToolsWarning(names: ReadonlySet<string>): string | null {
  if (names.size === 0) return null;
  const list = [...names].map(quoted).join(", ");
  return `The model called ${list}, which the request does not have as a tool; the call is left in the text.`;
}

/** Quotes a name, which the model may have invented, without characters that control a terminal. */
function quoted(name: string): string {
  return JSON.stringify(name).replace(/[\u007f-\u009f]/g, "\ufffd");
}
