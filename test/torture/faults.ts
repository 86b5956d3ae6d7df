import type { Fault } from '../sandbox/faulty-sandbox.js';
import type { Behavior } from '../mail/mail-server.js';
import type { Choice } from './choice.js';

/** A fault without its target and number of times. */
type Strike = (choice: Choice) => DistributiveOmit<Fault, 'on' | 'after' | 'times'>;
type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

/** Every fault that the sandbox can apply to any request. */
const OF_ANY: readonly [Strike, ...Strike[]] = [
  (choice) => ({ kind: 'latency', delayMs: choice.whole(1, 60) }),
  (choice) => ({
    kind: 'rate-limit',
    retryAfter: choice.pick(['seconds', 'date', 'none'] as const),
    seconds: choice.pick([0, 1, 5, 20, 90, 4_000]),
    body: choice.pick(['json', 'text'] as const),
  }),
  (choice) => ({ kind: 'status', status: choice.pick([400, 401, 402, 403, 404, 409, 500, 502, 503, 504]) }),
  () => ({ kind: 'reset' }),
  () => ({ kind: 'timeout' }),
  () => ({ kind: 'lost-reply' }),
  (choice) => ({ kind: 'status-after', status: choice.pick([500, 502, 503]) }),
  () => ({ kind: 'cut-body' }),
  () => ({ kind: 'html' }),
  (choice) => ({
    kind: 'missing-field',
    field: choice.pick(['totals', 'views', 'hasMore', 'path', 'id', 'status']),
  }),
];

/** Faults that only the paging of views has. */
const OF_VIEWS: readonly [Strike, ...Strike[]] = [
  () => ({ kind: 'negative-count' }),
  (choice) => ({ kind: 'endless', beyond: choice.pick(['last-page', 'nothing'] as const) }),
  () => ({ kind: 'counts-move' }),
  () => ({ kind: 'order-moves' }),
];

/** Faults for one command: none or some, most of them a few times, some for as long as it runs. */
export function platformFaults(choice: Choice): Fault[] {
  return Array.from({ length: choice.weighted([3, 0], [4, 1], [2, 2], [1, 4]) }, () => {
    const on = choice.weighted([5, 'views'], [3, 'create'], [1, 'message'], [2, 'job'], [1, 'any']);
    const isOfPaging = on === 'views' && choice.chance(0.4);
    const strike = choice.pick(isOfPaging ? OF_VIEWS : OF_ANY)(choice);
    const isLasting = choice.chance(0.15);
    const after = choice.weighted([3, 0], [2, choice.whole(0, 4)], [1, choice.whole(0, 60)]);
    return { ...strike, on, after, ...(isLasting ? {} : { times: choice.whole(1, 3) }) };
  });
}

/** What a mail server does with the next emails for one recipient, one per conversation. */
export function mailBehaviors(choice: Choice): Behavior[] {
  if (choice.chance(0.4)) return [];
  return Array.from({ length: choice.whole(1, 2) }, () =>
    choice.pick<Behavior>([
      { on: 'rcpt', do: 451 },
      { on: 'rcpt', do: 550 },
      { on: 'rcpt', do: 'drop' },
      { on: 'rcpt', do: 'silence' },
      { on: 'data', do: 421 },
      { on: 'data', do: 451 },
      { on: 'data', do: 552 },
      { on: 'data', do: 'drop-accepted' },
      { on: 'data', do: 'drop-lost' },
      { on: 'data', do: 'silence' },
      { on: 'data', do: 'delay', ms: choice.whole(1, 80) },
    ]),
  );
}
