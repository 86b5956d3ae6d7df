import type { TryLaterError } from '../api/errors.js';

/** Days fetched at the same time fail at the same time: one note tells of them all. */
const SAME_MOMENT_MS = 400;

/** Within this, a fault of the same kind is the same fault going on. */
const SAME_FAULT_MS = 60_000;

/** Tells of requests that are sent again: the fault in full once, then a word for each further round. */
export function retryNotes(
  note: (text: string) => void,
): (error: TryLaterError, retriesLeft: number) => void {
  let last = { reason: '', retriesLeft: -1, ms: -Infinity };
  return ({ reason, message }, retriesLeft) => {
    const ms = performance.now();
    const isSameFault = reason === last.reason && ms - last.ms < SAME_FAULT_MS;
    if (isSameFault && retriesLeft === last.retriesLeft && ms - last.ms < SAME_MOMENT_MS) return;
    last = { reason, retriesLeft, ms };
    note(`${isSameFault ? '' : `${message} `}Trying again (${retriesLeft} left).`);
  };
}
