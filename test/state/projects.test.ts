import { expect, it } from 'vitest';
import { day } from '../../src/day.js';
import {
  notesOf,
  readChoices,
  readSkips,
  recordSkip,
  replaceChoices,
  replaceNotes,
} from '../../src/state/decisions.js';
import {
  forgetDayFailure,
  forgetFailuresBefore,
  forgetPages,
  keepPages,
  readDayFailures,
  readKeptPages,
  readLastVerification,
  readUnfinishedDays,
  recordDayFailure,
  recordVerification,
} from '../../src/state/days.js';
import { readDeliveriesOf } from '../../src/state/emails.js';
import { readFact, recordFact } from '../../src/state/platform.js';
import {
  readMessages,
  readPromptPause,
  readSentPrompts,
  recordPromptPause,
} from '../../src/state/messages.js';
import { forgetProblems, readJobs, readUnmergedJobs } from '../../src/state/jobs.js';
import type { State } from '../../src/state/state.js';
import { FIRST_DAY } from '../../src/export/range.js';
import { change, newState, NOW, valueOf } from './new-state.js';

const DAY = day('2026-11-09');
const PATH = '/guide';

/** Fills each table that has projects with rows of one. Returns the id of its job. */
async function fill(state: State, project: string): Promise<number> {
  const at = { project, day: DAY, now: NOW };
  await state.transaction(() => {
    const reason = {
      chosen_at: NOW,
      is_flagged: true,
      code: 'flagged',
      facts: '{}',
      weekly_human: 1,
      weekly_ai: 1,
    };
    replaceChoices(state, project, [{ path: PATH, ...reason }]);
    recordSkip(state, { project, path: PATH }, NOW, null);
    replaceNotes(state, project, [{ day: DAY, text: 'launch', path: '*', is_break: false }]);
    recordPromptPause(state, {
      project,
      now: NOW,
      until: new Date('2026-11-19T05:00:00Z'),
      cause: 'a limit',
    });
  });
  await recordDayFailure(state, at, 'refused');
  await keepPages(state, at, new Map([[0, { views: [1] }]]));
  await recordVerification(state, project, { first: DAY, last: DAY }, 0, NOW);
  await recordFact(state, project, FIRST_DAY, DAY, NOW);
  await change(
    state,
    `INSERT INTO jobs (reference, project, path, state, reason, prompt, planned_at, ended_at, pr_link, weekly_human, weekly_ai, weeks)
    VALUES ($project, $project, $path, 'completed', '', '', $now, $now, 'https://code.example.com/1', 1, 1, '[]')`,
    { project, path: PATH, now: NOW },
  );
  const job = Number(valueOf(state, 'SELECT max(id) FROM jobs'));
  const values = { project, job, now: NOW };
  for (const sql of [
    `INSERT INTO messages (reference, job, state, origin, prompt, planned_at) VALUES ($project, $job, 'planned', 'typed', '', $now)`,
    `INSERT INTO job_changes VALUES ($job, NULL, $now, 'planned', 'sending', '')`,
    `INSERT INTO pull_requests VALUES ($job, $now, '2026', NULL, NULL, 'no access')`,
    `INSERT INTO emails (report, project, period, recipient, state, via, message_id, attempt, attempts, tried_at)
    VALUES ('weekly', $project, '2026-W46', 'docs@example.com', 'sent', 'smtp', '<a@b>', $job, 1, $now)`,
  ])
    await change(state, sql, values);
  return job;
}

/** How many rows of each kind a project has, as far as it is asked for by its name. */
const rowsOf = (state: State, project: string) => ({
  jobs: readJobs(state, project).length,
  messages: readMessages(state, project).length,
  sent: readSentPrompts(state, project, NOW).length,
  pauses: readPromptPause(state, project, NOW) === undefined ? 0 : 1,
  unmerged: readUnmergedJobs(state, project, new Date('2026-11-20T05:00:00Z')).length,
  problems: readJobs(state, project).filter((job) => job.pull_request_problem !== null).length,
  choices: readChoices(state, project).length,
  skips: readSkips(state, project, NOW).length,
  notes: notesOf(state, project).length,
  emails: readDeliveriesOf(state, { report: 'weekly', project }).length,
  failures: readDayFailures(state, project).length,
  unfinished: readUnfinishedDays(state, project).size,
  pages: readKeptPages(state, { project, day: DAY }).size,
  facts: readFact(state, project, FIRST_DAY, NOW) === undefined ? 0 : 1,
  verifications: readLastVerification(state, project) === undefined ? 0 : 1,
});

it('a project has its own rows only: neither those of one whose id begins like its own, nor the other way around', async () => {
  const { state } = await newState();
  await fill(state, 'prj_10');
  const none = Object.fromEntries(Object.keys(rowsOf(state, 'prj_1')).map((kind) => [kind, 0]));
  const one = Object.fromEntries(Object.keys(none).map((kind) => [kind, 1]));
  expect(rowsOf(state, 'prj_1')).toEqual(none);
  await fill(state, 'prj_1');
  expect(rowsOf(state, 'prj_1')).toEqual(one);
  expect(rowsOf(state, 'prj_10')).toEqual(one);

  // What is forgotten of one stays with the other.
  const at = { project: 'prj_1', day: DAY };
  await state.transaction(() => {
    replaceChoices(state, 'prj_1', []);
    replaceNotes(state, 'prj_1', []);
    forgetProblems(state, 'prj_1');
    forgetPages(state, at);
    forgetDayFailure(state, at);
  });
  await recordDayFailure(state, { project: 'prj_1', day: day('2026-11-08'), now: NOW }, 'refused');
  await recordDayFailure(state, { project: 'prj_1', day: day('2026-11-10'), now: NOW }, 'refused');
  await forgetFailuresBefore(state, 'prj_1', day('2026-11-10'));
  expect(readDayFailures(state, 'prj_1').map((failure) => failure.day)).toEqual(['2026-11-10']);
  await recordFact(state, 'prj_1', FIRST_DAY, undefined, NOW);
  expect(rowsOf(state, 'prj_1')).toMatchObject({
    choices: 0,
    notes: 0,
    problems: 0,
    pages: 0,
    facts: 0,
  });
  expect(rowsOf(state, 'prj_10')).toEqual(one);
});
