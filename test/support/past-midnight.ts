/** Limits of a day begin anew at midnight (UTC). Waits where that is a few seconds off, for tests that ask more than once in a day. */
export async function pastMidnight(): Promise<void> {
  const left = 86_400_000 - (Date.now() % 86_400_000);
  if (left < 5000) await new Promise((resolve) => setTimeout(resolve, left + 10));
}
