/** Ignores errors of stdout and stderr, so that the process survives when the reader of a pipe ends. */
export function outliveReaders(): void {
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}

/** Logs unhandled rejections of a user's program, which would otherwise end the process and the streams of other requests. */
export function reportRejections(): void {
  process.on("unhandledRejection", (reason) => {
    console.error(`truewire: Unhandled promise rejection: ${reason instanceof Error ? reason.stack : String(reason)}`);
  });
}
