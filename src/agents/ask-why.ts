import { subDays } from 'date-fns';
import { type Job, readJobs } from './ledger.js';
import { OPEN_MESSAGE_STATES } from './lifecycle.js';
import { type Message, planMessage, readMessages } from './message-ledger.js';
import { composeQuestion } from './prompt.js';
import type { Warehouse } from '../warehouse/warehouse.js';

/** Switched on, the rule does not go back to jobs that ended long before. */
const ASKED_WITHIN_DAYS = 7;

/**
 * The rule `improve.askWhenNoChange`: a job that lately completed without a pull request is asked for the reason, once.
 * Records the messages, and sends none.
 */
export async function askWhyNoChange(
  warehouse: Warehouse,
  project: string,
  { now, ...prompts }: { readonly now: Date } & Parameters<typeof composeQuestion>[1],
): Promise<void> {
  const jobs = await readJobs(warehouse, project);
  for (const job of jobsToAsk(jobs, await readMessages(warehouse, project), now)) {
    const prompt = composeQuestion(job, prompts);
    await planMessage(warehouse, job, { origin: 'askWhenNoChange', prompt, now });
  }
}

/** The jobs to ask now. A question whose fate is open, or a message under way, is answered first. */
function jobsToAsk(jobs: readonly Job[], messages: readonly Message[], now: Date): Job[] {
  const settled = new Set(
    messages
      .filter(({ state, origin }) => origin === 'askWhenNoChange' || OPEN_MESSAGE_STATES.has(state))
      .map(({ job }) => job),
  );
  return jobs.filter(
    ({ id, state, pr_link, ended_at }) =>
      state === 'completed' &&
      pr_link === null &&
      ended_at !== null &&
      ended_at > subDays(now, ASKED_WITHIN_DAYS) &&
      !settled.has(id),
  );
}
