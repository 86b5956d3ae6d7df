import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import type { ProjectPage } from './skips.js';
import type { State } from './state.js';

const CHOICES_OF_PROJECT = readSql(import.meta.url, 'statements/choices-of-project.sql');
const RECORD_CHOICE = readSql(import.meta.url, 'statements/record-choice.sql');
const LEAVE_OUT = readSql(import.meta.url, 'statements/leave-out.sql');

const choiceRow = z.object({
  path: z.string(),
  chosen_at: timestampColumn,
  is_flagged: z.int().transform((flag) => flag === 1),
  code: z.string(),
  facts: z.string(),
  weekly_human: z.number(),
  weekly_ai: z.number(),
});
/** A page that was considered, with the reason as a code and facts as JSON, since when. */
export type Choice = z.infer<typeof choiceRow>;

/** What the latest selection of a project considered. */
export const readChoices = (state: State, project: string): Choice[] =>
  state.all(CHOICES_OF_PROJECT, choiceRow, { project });

/** Stores what a selection considered, instead of the one before. */
export function replaceChoices(state: State, project: string, choices: readonly Choice[]): void {
  state.run('DELETE FROM choices WHERE project = $project', { project });
  for (const choice of choices) state.run(RECORD_CHOICE, { ...choice, project });
}

/** Leaves a page out that was considered, for another reason. */
export function leaveOut(state: State, page: ProjectPage, why: Pick<Choice, 'code' | 'facts'>): void {
  state.run(LEAVE_OUT, { ...page, ...why });
}

/** Forgets that a page was left out for this reason. */
export function forgetLeftOut(state: State, page: ProjectPage, code: string): void {
  state.run('DELETE FROM choices WHERE project = $project AND path = $path AND code = $code', {
    ...page,
    code,
  });
}
