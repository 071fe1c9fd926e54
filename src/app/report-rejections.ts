/** A rejection that a program does not handle must not end the streams of other requests. */
export function reportRejections(): void {
  process.on("unhandledRejection", (reason) => {
    console.error(`truewire: Unhandled promise rejection: ${reason instanceof Error ? reason.stack : String(reason)}`);
  });
}
