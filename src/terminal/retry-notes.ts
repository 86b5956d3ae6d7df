/** Days fetched at the same time fail at the same time: one note tells of them all. */
const SAME_MOMENT_MS = 400;

/** Tells of requests that are sent again, once for each round of those that wait together. */
export function retryNotes(note: (text: string) => void): (error: Error, retriesLeft: number) => void {
  let lastMs = -Infinity;
  let lastRound: number | undefined;
  return (error, retriesLeft) => {
    const nowMs = performance.now();
    if (retriesLeft === lastRound && nowMs - lastMs < SAME_MOMENT_MS) return;
    lastMs = nowMs;
    lastRound = retriesLeft;
    note(`${error.message} Trying again (${retriesLeft} left).`);
  };
}
