/** Time for which a saved file stays available, in milliseconds: browsers read it after the click. */
const readWithinMs = 60_000;

/** Lets the browser save a text as a file. */
export function saveFile(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), readWithinMs);
}
