import { addDays } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { day } from '../../src/day.js';
import { ConfigurationError } from '../../src/errors.js';
import { unsettledLines } from '../../src/print/status.js';
import { readUnsettled } from '../../src/service/status.js';
import { type Job, readJob } from '../../src/state/jobs.js';
import { type JobMessage, readMessagesTo } from '../../src/state/messages.js';
import type { State } from '../../src/state/state.js';
import { findJob } from '../../src/steps/job-messages.js';
import { type JobFinding, settleJob, type SettleTask, waysToSettle } from '../../src/steps/settle-job.js';
import { addJob, change, newState, NOW } from '../state/new-state.js';

const { projects } = settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] });
const LINK = 'https://code.example.com/acme/docs/pull/1';

type Columns = Partial<Record<'state' | 'attempt' | 'remote_id' | 'pr_link' | 'merged_on', string | number>>;

/** A state with a job that has these columns, planned today, and a message to it in a state, if one is given. */
async function stored(columns: Columns, message?: JobMessage['state']) {
  const { state } = await newState();
  const job = await addJob(state);
  const tried = columns.state === 'planned' ? null : NOW;
  await change(state, 'UPDATE jobs SET submitted_at = $tried, planned_at = $now', { tried, now: NOW });
  for (const [column, value] of Object.entries(columns))
    await change(state, `UPDATE jobs SET ${column} = $value`, { value });
  if (message !== undefined)
    await change(
      state,
      `INSERT INTO messages VALUES (1, 'm', $job, $message, 'typed', 'Go on', $now, 7, $now, NULL)`,
      { job, message, now: NOW },
    );
  return { state, job };
}

const taskOf = (state: State, given: Partial<SettleTask> = {}): SettleTask => ({
  state,
  workspace: { projects },
  now: () => NOW,
  lookUp: (_, id) => Promise.resolve({ id, status: 'active' }),
  ...given,
});

describe('the ways to settle a job', () => {
  it.each<[Columns, JobMessage['state'] | undefined, string]>([
    [{ state: 'planned' }, undefined, 'ended'],
    [{ state: 'sending' }, undefined, 'sent'],
    [{ state: 'unknown' }, undefined, 'ended sent notSent'],
    [{ state: 'active' }, undefined, 'ended sent'],
    [{ state: 'active', pr_link: LINK }, undefined, 'merged closed ended sent'],
    [{ state: 'refused' }, undefined, 'sent'],
    [{ state: 'failed' }, undefined, 'sent'],
    [{ state: 'completed' }, undefined, 'merged sent'],
    [{ state: 'completed', pr_link: LINK }, undefined, 'merged closed sent'],
    [{ state: 'completed', pr_link: LINK, merged_on: '2026-11-18' }, undefined, 'merged closed ended sent'],
    // As long as a message to it is not settled, that is settled first.
    [{ state: 'failed' }, 'unknown', 'ended sent notSent'],
    [{ state: 'failed' }, 'planned', 'ended sent'],
    [{ state: 'failed' }, 'sent', 'sent'],
  ])('%j, message %s: %s', async (columns, message, ways) => {
    const { state, job } = await stored(columns, message);
    expect(waysToSettle(findJob(state, { projects }, job)).join(' ')).toBe(ways);
  });
});

describe('what is stored', () => {
  it.each<[Columns, JobFinding, Partial<Job>]>([
    [{ state: 'planned' }, { as: 'ended' }, { state: 'refused' }],
    [{ state: 'unknown' }, { as: 'ended' }, { state: 'refused' }],
    [{ state: 'unknown' }, { as: 'notSent' }, { state: 'planned' }],
    [{ state: 'unknown' }, { as: 'sent', remoteId: 'job_7' }, { state: 'active', remote_id: 'job_7' }],
    [{ state: 'active', remote_id: 'job_1' }, { as: 'ended' }, { state: 'failed', next_poll_at: null }],
    [{ state: 'active', remote_id: 'job_1', pr_link: LINK }, { as: 'ended' }, { state: 'completed' }],
    // Another job has another pull request.
    [
      { state: 'completed', remote_id: 'job_1', pr_link: LINK, merged_on: '2026-11-18' },
      { as: 'sent', remoteId: 'job_7' },
      { state: 'active', remote_id: 'job_7', pr_link: null, merged_on: null },
    ],
    [{ state: 'completed' }, { as: 'merged' }, { merged_on: day('2026-11-18') }],
    [{ state: 'completed', pr_link: LINK }, { as: 'closed' }, { closed_on: day('2026-11-18') }],
    [
      { state: 'completed', pr_link: LINK, merged_on: '2026-11-18' },
      { as: 'closed' },
      { merged_on: null, closed_on: day('2026-11-18') },
    ],
    [{ state: 'completed', pr_link: LINK, merged_on: '2026-11-18' }, { as: 'ended' }, { merged_on: null }],
  ])('of %j, settled with %j: %j', async (columns, finding, expected) => {
    const { state, job } = await stored(columns);
    await settleJob(taskOf(state), job, finding);
    expect(readJob(state, job)).toMatchObject(expected);
  });

  it.each<[JobFinding['as'], JobMessage['state'], Job['state']]>([
    ['sent', 'sent', 'active'],
    ['notSent', 'planned', 'completed'],
    ['ended', 'refused', 'completed'],
  ])('of a message settled with %s', async (as, expected, jobState) => {
    const { state, job } = await stored({ state: 'completed', remote_id: 'job_1' }, 'unknown');
    await settleJob(taskOf(state), job, { as });
    expect(readMessagesTo(state, job)).toMatchObject([{ state: expected }]);
    expect(readJob(state, job)).toMatchObject({ state: jobState });
  });
});

describe('nothing is stored', () => {
  it.each<[string, Columns, JobFinding, RegExp]>([
    ['in another way', { state: 'planned' }, { as: 'closed' }, /Record its outcome with --ended\.$/],
    ['without its id', { state: 'unknown' }, { as: 'sent' }, /--sent REMOTE_ID$/],
    ['with the id of another job', { state: 'unknown' }, { as: 'sent', remoteId: 'job_2' }, /as job 2\./],
    [
      'as merged before it was planned',
      { state: 'completed' },
      { as: 'merged', day: day('2026-11-17') },
      /cannot have been merged on 2026-11-17/,
    ],
    [
      'as merged tomorrow',
      { state: 'completed' },
      { as: 'merged', day: day('2026-11-19') },
      /today is 2026-11-18/,
    ],
  ])('of a job settled %s', async (_, columns, finding, words) => {
    const { state, job } = await stored(columns);
    await addJob(state, '/other');
    await change(state, `UPDATE jobs SET remote_id = 'job_2' WHERE path = '/other'`);
    const before = readJob(state, job);
    const settling = settleJob(taskOf(state), job, finding);
    await expect(settling).rejects.toThrow(ConfigurationError);
    await expect(settling).rejects.toThrow(words);
    expect(readJob(state, job)).toEqual(before);
  });

  it('unless the id only begins like that of another job', async () => {
    const { state, job } = await stored({ state: 'unknown' });
    await addJob(state, '/other');
    await change(state, `UPDATE jobs SET remote_id = 'job_20' WHERE path = '/other'`);
    await settleJob(taskOf(state), job, { as: 'sent', remoteId: 'job_2' });
    expect(readJob(state, job)).toMatchObject({ state: 'active', remote_id: 'job_2' });
  });

  it('of a job that was sent again after it was shown', async () => {
    const { state, job } = await stored({ state: 'unknown', attempt: 5 });
    const shown = (attempt: number) => settleJob(taskOf(state, { attempt }), job, { as: 'notSent' });
    await expect(shown(4)).rejects.toThrow('sent again, in the meantime');
    expect(readJob(state, job)?.state).toBe('unknown');
    await shown(5);
    expect(readJob(state, job)?.state).toBe('planned');
  });
});

it('a job that is active for very long is named until someone settles it, with the command that does', async () => {
  const { state, job } = await stored({ state: 'active', remote_id: 'job_1' });
  const now = addDays(NOW, 77);
  const named = () => unsettledLines(readUnsettled(state, projects, now));
  expect(named()).toEqual([
    expect.stringMatching(
      /^job 1 \(.+\) has been active since Nov 18, 2026\. Look at it on the platform; if it is over: readership jobs settle 1 --ended$/,
    ),
  ]);
  await settleJob(taskOf(state), job, { as: 'ended' });
  expect(named()).toEqual([]);
});
