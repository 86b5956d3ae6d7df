import { describe, expect, it } from 'vitest';
import {
  JOB_STATES,
  type JobEvent,
  type JobState,
  MESSAGE_STATES,
  type MessageEvent,
  type MessageState,
  nextMessageState,
  nextState,
  pollDelayMs,
} from '../../src/agents/lifecycle.js';

type Row<Event, State> = readonly [event: Event, from: readonly State[], to: State];

const sent: readonly JobState[] = ['active', 'completed', 'failed', 'archived'];

const JOB_TABLE: readonly Row<JobEvent, JobState>[] = [
  [{ kind: 'submit' }, ['planned'], 'submitting'],
  [{ kind: 'accepted', status: 'active' }, ['submitting'], 'active'],
  [{ kind: 'accepted', status: 'pending' }, ['submitting'], 'active'],
  [{ kind: 'accepted', status: 'completed' }, ['submitting'], 'completed'],
  [{ kind: 'not-done' }, ['submitting'], 'planned'],
  [{ kind: 'outcome-unknown' }, ['submitting'], 'unconfirmed'],
  [{ kind: 'refused' }, ['submitting'], 'refused'],
  [{ kind: 'polled', status: 'active' }, ['active'], 'active'],
  [{ kind: 'polled', status: 'thinking hard' }, ['active'], 'active'],
  [{ kind: 'polled', status: 'completed' }, ['active'], 'completed'],
  [{ kind: 'polled', status: 'failed' }, ['active'], 'failed'],
  [{ kind: 'polled', status: 'archived' }, ['active'], 'archived'],
  [{ kind: 'followed-up' }, sent, 'active'],
  [{ kind: 'found-created' }, ['unconfirmed'], 'active'],
  [{ kind: 'found-not-created' }, ['unconfirmed'], 'planned'],
  [{ kind: 'found-gone' }, ['active'], 'failed'],
];

describe('the life of a job', () => {
  it.each(JOB_TABLE)('%o happens in %s only, and leads to %s', (event, from, to) => {
    for (const state of JOB_STATES)
      expect(nextState(state, event)).toBe(from.includes(state) ? to : undefined);
  });

  it('never leads back to where a prompt would be sent again, but from what is known not to be done', () => {
    const back = JOB_TABLE.filter(([, , to]) => to === 'planned').map(([{ kind }]) => kind);
    expect(back).toEqual(['not-done', 'found-not-created']);
  });
});

const MESSAGE_TABLE: readonly Row<MessageEvent, MessageState>[] = [
  ['submit', ['planned'], 'submitting'],
  ['accepted', ['submitting'], 'sent'],
  ['not-done', ['submitting'], 'planned'],
  ['outcome-unknown', ['submitting'], 'unconfirmed'],
  ['refused', ['submitting'], 'refused'],
  ['found-sent', ['unconfirmed'], 'sent'],
  ['found-not-sent', ['unconfirmed'], 'planned'],
];

describe('the life of a message', () => {
  it.each(MESSAGE_TABLE)('%s happens in %s only, and leads to %s', (event, from, to) => {
    for (const state of MESSAGE_STATES)
      expect(nextMessageState(state, event)).toBe(from.includes(state) ? to : undefined);
  });
});

describe('the time between two questions', () => {
  it('doubles from the least to the most, and stays there', () => {
    const delays = [0, 1, 2, 5, 6, 7, 1000].map((polls) => pollDelayMs(polls, 5_000, 300_000));
    expect(delays).toEqual([5_000, 10_000, 20_000, 160_000, 300_000, 300_000, 300_000]);
  });
});
