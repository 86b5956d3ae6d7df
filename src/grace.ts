/** How long a request under way may still take after an interruption, so that its reply is not lost for nothing. */
const GRACE_MS = 3_000;

/** A signal that aborts some seconds after the given one. */
export function withGrace(signal: AbortSignal): AbortSignal {
  const late = new AbortController();
  const abortLate = () => {
    setTimeout(() => {
      late.abort(signal.reason);
    }, GRACE_MS).unref();
  };
  if (signal.aborted) abortLate();
  else signal.addEventListener('abort', abortLate, { once: true });
  return late.signal;
}
