import { describe, expect, it } from 'vitest';
import { ALL_PROJECTS, mayBeTried, type PeriodState, settled, whatIsDue } from '../../src/mail/delivery.js';
import type { Delivery } from '../../src/state/emails.js';
import { address, delivery as stored } from './letters.js';

const docs = address('docs@example.com');
const lead = address('lead@example.com');
const at = (time: string) => new Date(`2026-11-${time}Z`);
const complete: PeriodState = {
  days: 7,
  daysLoaded: 7,
  from: at('16T00:00'),
  until: at('17T02:15'),
  recipients: [docs, lead],
  via: () => 'smtp',
  project: 'prj_1',
  deliveries: [],
};

const delivery = (recipient: string, state: Delivery['state'], next: Date | null = null): Delivery => ({
  ...stored({ report: 'weekly', project: 'prj_1', period: '2026-W46', recipient }, state, at('16T03:00')),
  next_attempt_at: next,
});

describe('a report', () => {
  it('is due to everyone once the last day of its period is loaded, or the wait for it is over', () => {
    expect(whatIsDue(complete, at('16T00:20'))).toEqual({ recipients: [docs, lead] });
    const lacking = { ...complete, daysLoaded: 6 };
    const waits = { for: '1 missing day', until: at('17T02:15') };
    expect(whatIsDue(lacking, at('17T02:14'))).toEqual(waits);
    expect(whatIsDue(lacking, at('17T02:15'))).toEqual({ recipients: [docs, lead] });
  });

  it('is not due before the time of its schedule, and never while it has no content', () => {
    const scheduled = { ...complete, from: at('18T08:00') };
    expect(whatIsDue(scheduled, at('18T07:59'))).toBeUndefined();
    expect(whatIsDue(scheduled, at('18T08:00'))).toHaveProperty('recipients');
    expect(whatIsDue({ ...complete, daysLoaded: 0 }, at('30T00:00'))).toHaveProperty('until', null);
  });

  it.each(['sent', 'failed', 'unknown', 'sending'] as const)(
    'is not due to a recipient for whom it is %s, but still due to others',
    (state) => {
      const deliveries = [delivery(docs, state)];
      const due = whatIsDue({ ...complete, deliveries }, at('30T00:00'));
      expect(due).toEqual({ recipients: [lead] });
    },
  );

  it('is due again at the time of the next attempt, and not before', () => {
    const deliveries = [delivery(docs, 'waiting', at('16T04:00')), delivery(lead, 'sent')];
    expect(whatIsDue({ ...complete, deliveries }, at('16T03:59'))).toBeUndefined();
    // A clock that was ahead stored a time later than this retry can have.
    for (const next of [new Date('2027-12-01'), at('16T07:00')]) {
      const ahead = [delivery(docs, 'waiting', next), delivery(lead, 'sent')];
      const due = whatIsDue({ ...complete, deliveries: ahead }, at('16T03:59'));
      expect(due).toEqual({ recipients: [docs] });
    }
    expect(whatIsDue({ ...complete, deliveries }, at('16T04:00'))).toEqual({ recipients: [docs] });
  });
});

it.each<[Delivery['state'], Date | null, readonly [due: boolean, unsettled: boolean, force: boolean]]>([
  ['sending', null, [false, false, false]],
  ['sent', null, [false, false, true]],
  ['failed', null, [false, false, true]],
  ['unknown', null, [false, false, true]],
  ['written', null, [true, true, true]],
  ['waiting', null, [true, true, true]],
  ['waiting', at('16T04:00'), [false, true, true]],
])('a delivery that is %s until %s may be tried if due, unsettled or forced: %j', (state, next, expected) => {
  const admissions = ['due', 'unsettled', 'force'] as const;
  const now = at('16T03:58');
  expect(
    admissions.map((one) => mayBeTried([delivery(docs, state, next)], 'prj_1', one, () => 'smtp', now)),
  ).toEqual(expected);
});

it.each<[Delivery['state'], boolean]>([
  ['sending', false],
  ['sent', false],
  ['unknown', false],
  ['failed', true],
  ['waiting', true],
])(
  'while one about a project is %s, one about all projects may be tried: %s; and the reverse',
  (state, expected) => {
    const one = delivery(docs, state);
    const now = at('16T03:58');
    expect(mayBeTried([one], ALL_PROJECTS, 'unsettled', () => 'smtp', now)).toBe(expected);
    const all = { ...one, project: ALL_PROJECTS };
    expect(mayBeTried([all], 'prj_1', 'unsettled', () => 'smtp', now)).toBe(expected);
  },
);

it('a delivery is attempted for four days, at intervals that double from five minutes to four hours', () => {
  const now = at('16T03:00');
  const [minutes, states] = [new Array<number>(), new Array<string>()];
  for (let attempts = 1; attempts <= 30; attempts++) {
    const sending = { ...delivery(docs, 'sending'), attempts };
    const after = settled(sending, { kind: 'not-sent', words: 'busy' }, now);
    const { state, next_attempt_at: next, note } = after;
    if (next !== null) minutes.push((next.getTime() - now.getTime()) / 60_000);
    states.push(`${state}: ${note}`);
  }
  expect(minutes).toEqual([5, 10, 20, 40, 80, 160, ...Array<number>(23).fill(240)]);
  expect(minutes.reduce((sum, one) => sum + one) / 60 / 24).toBeGreaterThan(4);
  expect(states.slice(-2)).toEqual(['waiting: busy', 'failed: gave up after 30 attempts: busy']);
});
