import type { Logger } from 'pino';
import { z } from 'zod';
import type { Listener } from '../app/open.js';
import { messageOf } from '../errors.js';
import { isRefused } from '../export/load.js';
import type { Colors, Output } from '../terminal/output.js';
import { waitNotes } from './progress.js';

/** Logs the service's steps, jobs and failed days. */
export const logging = (log: Log): Listener => ({
  onWait: waitNotes((until, why) => log.info({ until, why }, 'requests are waiting')),
  onNotice: (words) => log.warn(words),
  onRetry: ({ message: error }, retriesLeft) => log.warn({ retriesLeft, error }, 'a request is retried'),
  onStepStart: (step) => log.info({ step }, `${step} started`),
  onStepEnd: (step, { outcome, summary, resume_at: resumeAt }) => {
    const level = outcome === 'failed' ? 'error' : outcome === 'later' ? 'warn' : 'info';
    log[level]({ step, outcome, summary, ...(resumeAt === null ? {} : { resumeAt }) }, `${step} ${outcome}`);
  },
  onAlertFailed: (error) => log.warn({ error }, 'an alert could not be sent'),
  onExportPlan: ({ id: project }, { days, requests }) =>
    log.info({ project, days: days.length, requests }, 'days to load'),
  onDay: ({ id: project }, result) => {
    if (result.outcome !== 'failed') return;
    const facts = { project, day: result.day, error: messageOf(result.error) };
    // Days before those that the platform keeps are refused, too. If it is a failure, the step says so.
    if (isRefused(result)) log.info(facts, 'a day was refused');
    else log.warn(facts, 'a day failed');
  },
  onJob: ({ id: job, project, path, state, pr_link: pullRequest }) =>
    log.info({ project, job, path, state, pullRequest }, 'a job changed'),
  onThenOutput: (line) => log.info({ line }, 'publish.then'),
});

export type Log = Logger;

const lineSchema = z.looseObject({ level: z.number(), time: z.string(), msg: z.string().default('') });

/**
 * A log on standard output: one JSON object per line, or readable lines on a terminal unless
 * `json`.
 */
export async function openLog(output: Output, { json = false } = {}): Promise<Log> {
  // In the bundle, a CommonJS package that is loaded on demand has only its default export.
  const { pino } = (await import('pino')).default;
  const write = (logged: string) => {
    const line = `${JSON.stringify(JSON.parse(logged), (_, value: unknown) => (typeof value === 'string' ? output.asInvoked(value) : value))}\n`;
    const isForPeople = output.isTerminal && !json;
    output.write(isForPeople ? lineForPeople(line, pino.levels.labels, output.colors) : line);
  };
  return pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

function lineForPeople(
  line: string,
  levels: Readonly<Record<number, string>>,
  { dim, green, yellow, red }: Colors,
): string {
  const { level, time, msg, ...details } = lineSchema.parse(JSON.parse(line));
  const color = level >= 50 ? red : level >= 40 ? yellow : green;
  const facts = Object.entries(details).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  const name = levels[level]?.toUpperCase() ?? '';
  return `${dim(time)} ${color(name)} ${msg}${dim(facts.join(''))}\n`;
}
