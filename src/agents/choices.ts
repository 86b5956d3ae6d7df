import { z } from 'zod';
import type { Day } from '../day.js';
import { inSequence } from '../format/days.js';
import { pageOf } from '../page.js';
import { type Choice, forgetLeftOut, leaveOut, readChoices, replaceChoices } from '../state/choices.js';
import { readJobs } from '../state/jobs.js';
import { forgetSkip, type ProjectPage, recordSkip } from '../state/skips.js';
import type { State } from '../state/state.js';
import { readSql } from '../columns.js';
import type { Reader } from '../history/query.js';
import { type Reason, storedReason } from './reasons.js';
import type { Selection } from './select.js';

const NEAR_PATHS = readSql(import.meta.url, 'statements/near-paths.sql');

/**
 * In a transaction: stores which pages were flagged, are next in line or were left out, and since when, for reports. A
 * decision that repeats keeps its time, unless the page got a job in between.
 */
export function recordChoices(
  state: State,
  project: string,
  { flagged, next, leftOut }: Selection,
  now: Date,
): void {
  const before = new Map(readChoices(state, project).map((choice) => [choice.path, choice]));
  const plannedAt = new Map<string, Date>();
  for (const { path, planned_at } of readJobs(state, project)) plannedAt.set(pageOf(path), planned_at);
  const choices = [...flagged, ...next, ...leftOut].map(
    ({ path, why, evidence: { weekly_human, weekly_ai } }): Choice => {
      const known = before.get(path);
      const isSame = known !== undefined && isSameDecision(known, why);
      const gotJob = isSame && (plannedAt.get(path) ?? 0) >= known.chosen_at;
      return {
        path,
        chosen_at: isSame && !gotJob ? known.chosen_at : now,
        is_flagged: why.code === 'flagged',
        ...storedReason(why),
        weekly_human,
        weekly_ai,
      };
    },
  );
  replaceChoices(state, project, choices);
}

const jobOf = (facts: string) => z.looseObject({}).parse(JSON.parse(facts))['job'];

const isSameDecision = ({ code, facts }: Choice, why: Reason): boolean =>
  code === why.code && jobOf(facts) === ('job' in why ? why.job : undefined);

export const reasonOfSkip = (until: Day | null): Reason => ({ code: 'skipped', until });

/** Skips a page from now on; it is no longer flagged. In a transaction. */
export function skipPage(state: State, page: ProjectPage, now: Date, until: Day | null): void {
  recordSkip(state, page, now, until);
  leaveOut(state, page, storedReason(reasonOfSkip(until)));
}

/** Ends a skip; the next selection considers the page again. In a transaction. */
export function unskipPage(state: State, page: ProjectPage): void {
  forgetSkip(state, page);
  forgetLeftOut(state, page, 'skipped');
}

/** An error message with similar paths if the history has no such page; undefined if it has one. */
export async function unknownPage(reader: Reader, project: string, path: string) {
  const rows = await reader.query(NEAR_PATHS, z.object({ path: z.string() }), { project, path });
  const near = rows.map((row) => row.path);
  if (near[0] === path) return undefined;
  return `the history has no such page${near.length === 0 ? '' : `; did you mean ${inSequence(near, 'or')}?`}`;
}
