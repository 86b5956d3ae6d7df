import { min } from 'date-fns';
import type { Runtime, Workspace } from '../app/workspace.js';
import { lastScheduled } from '../config/cron.js';
import { type Day, dayOf, lastEndedDay } from '../day.js';
import { placeWords } from '../state/workspace.js';
import { duration, inSequence, longDay, moment } from '../format/days.js';
import { bytes, counted } from '../format/numbers.js';
import type { CheckResult } from '../service/findings.js';
import { type OperationsStatus, readUnsettled, type Status, type Unsettled } from '../service/status.js';
import { futureWords } from '../steps/history.js';
import type { Colors } from '../terminal/output.js';
import { ALERT } from '../mail/delivery.js';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { type Fact, fact, warning } from './project-facts.js';
import type { DeliveryKey } from '../state/emails.js';
import type { State } from '../state/state.js';
import { resendCommand, settleCommands } from './emails.js';
import { unsettledPromptLines } from './jobs.js';

/** What `readership doctor` found, as lines of text. */
export function findingLines(findings: readonly CheckResult[], { green, yellow, red }: Colors): string {
  const paint = { pass: green, warn: yellow, fail: red };
  return findings
    .map(({ verdict, check, words }) => `${paint[verdict](verdict)}  ${check.padEnd(15)}${words}`)
    .join('\n');
}

/** What needs attention, and what to do about it. */
export function needsOf(
  { projects, operations }: Status,
  { settings: { schedule } }: Pick<Workspace, 'settings'>,
  now: Date,
): string[] {
  const { runs, outages, waitingDeliveries, failedDeliveries } = operations;
  const { pullRequestProblems, stateProblem, readOnlyDisk } = operations;
  const [firstProblem] = pullRequestProblems;
  const exportAt = lastScheduled(schedule.export, schedule.timezone, now);
  const isExportOver = dayOf(exportAt) === dayOf(now);
  const isExported = runs.some(
    ({ step, outcome, started_at: at }) => step === 'export' && outcome === 'done' && at >= exportAt,
  );
  // A site has no views before its launch, which a successful export has found.
  const isExpected = (from: Day | null): boolean => (from === null ? !isExported : from <= lastEndedDay(now));
  const all = [
    ...projects.flatMap(({ name, keyProblem, failed, isYesterdayStored, historyFrom, stuck }) => [
      keyProblem !== null && `${name}: check the API key: ${keyProblem}`,
      ...stuck.map(
        ({ day, why, readAgain }) =>
          `${name}: ${longDay(day)} has not added up for several nights (${why ?? 'no reason was recorded'}), and is read again on ${longDay(readAgain)}. Ask the platform's operators, then: readership export --reload --from ${day} --to ${day}`,
      ),
      failed.length > 0 && `${name}: ${counted(failed.length, 'day')} failed: readership export`,
      !isYesterdayStored &&
        isExportOver &&
        isExpected(historyFrom) &&
        `${name}: yesterday has been missing since ${moment(exportAt)}: readership export`,
    ]),
    ...outageLines(outages),
    stateProblem !== null && stateProblem,
    readOnlyDisk !== null &&
      `The disk of ${readOnlyDisk} is read-only, so nothing is loaded or sent: mount it writable.`,
    firstProblem !== undefined &&
      `${counted(pullRequestProblems.length, 'pull request')} could not be looked up, such as that of job ${firstProblem.job}: ${firstProblem.problem}`,
    ...unsettledPromptLines(operations),
    ...waitingDeliveries.map(
      ({ report, period, recipient, note }) =>
        `${report} ${period} to ${recipient} has not been sent: ${note ?? 'no reason was recorded'}. It is retried automatically; check with: readership doctor`,
    ),
    ...failedDeliveries.map(
      (delivery) =>
        `${delivery.report} ${delivery.period} was not delivered to ${delivery.recipient}: ${delivery.note ?? 'no reason was recorded'}. ${afterRefusal(delivery)}`,
    ),
    ...unknownDeliveryLines(operations),
  ];
  return all.filter((need) => need !== false);
}

/** What may or may not have been sent, with the commands that settle it. */
export const unsettledLines = (unsettled: Unsettled): string[] => [
  ...unsettledPromptLines(unsettled),
  ...unknownDeliveryLines(unsettled),
];

/** Notes what may or may not have been sent. */
export function noteUnsettled(
  { projects }: Pick<Workspace, 'projects'>,
  state: State,
  { now, output }: Pick<Runtime, 'now' | 'output'>,
): void {
  for (const line of unsettledLines(readUnsettled(state, projects, now()))) output.note(line);
}

const unknownDeliveryLines = ({ unknownDeliveries }: Unsettled): string[] =>
  unknownDeliveries.map((delivery) => {
    const { report, period, recipient } = delivery;
    return `${report} ${period} may or may not have reached ${recipient}. Ask the recipient, then: ${settleCommands(delivery)}`;
  });

/**
 * Steps that fail for the same reason share a line. The words of a step are the reason, after what it did, if anything:
 * that begins with a number, and a reason may have semicolons of its own.
 */
function outageLines(outages: OperationsStatus['outages']): string[] {
  const reasons = outages.map(({ words }) => words?.replace(/^\d[^:;\n]*; /, ''));
  return [...new Set(reasons)].map((reason) => {
    const alike = outages.filter((_, index) => reasons[index] === reason);
    const [words = reason, ...others] = new Set(alike.map((outage) => outage.words ?? undefined));
    const steps = inSequence(alike.map(({ step }) => step));
    const since = moment(min(alike.map((outage) => outage.since)));
    const why = (others.length === 0 ? words : reason) ?? 'no message was recorded';
    return `${steps} ${alike.length === 1 ? 'has' : 'have'} failed since ${since}: ${why}`;
  });
}

const afterRefusal = (delivery: DeliveryKey): string =>
  delivery.report === ALERT
    ? `Until that is fixed, alerts do not reach it: readership doctor`
    : `When that is fixed: ${resendCommand(delivery)}`;

/** The facts about runs, jobs, emails and disk space. */
export function operationsFacts(operations: OperationsStatus, now: Date): Fact[] {
  const { writtenAt, diskFreeBytes, sendsFrom, datedInFuture, runs, unknownJobs } = operations;
  const jobs = countsText(operations.jobs);
  const messages = countsText({
    unknown: operations.unknownMessages.length,
    planned: operations.plannedMessages,
  });
  const emails = countsText({
    waiting: operations.waitingDeliveries.length,
    unknown: operations.unknownDeliveries.length,
    failed: operations.failedDeliveries.length,
  });
  const written = operations.writtenDeliveries.length;
  const all = [
    ...runs.map(({ step, started_at: at, outcome, summary }) =>
      outcome === 'later'
        ? warning(`last ${step}`, `not finished, ${moment(at)}: ${summary ?? 'no reason was recorded'}`)
        : fact(`last ${step}`, `${outcome}, ${moment(at)}`),
    ),
    jobs !== '' && fact('jobs', jobs + (unknownJobs.length === 0 ? '' : ' (see below)')),
    messages !== '' && fact('messages', messages),
    emails !== '' && fact('emails', emails),
    written > 0 &&
      warning(
        'not sent',
        `${counted(written, 'email')}, only written to a file: set ${SMTP_URL_VARIABLE} in .env, then`,
        'readership run',
      ),
    sendsFrom?.isHere === false &&
      fact('sends from', `${placeWords(sendsFrom)}; this copy sends nothing (readership adopt)`),
    datedInFuture.length > 0 && fact('in the future', futureWords(datedInFuture)),
    fact('disk', `${bytes(diskFreeBytes)} free`),
    writtenAt !== null && fact('last written', sinceThen(writtenAt, now)),
  ];
  return all.filter((one) => one !== false);
}

/** How many are in each state, such as `8 completed, 2 failed`; empty for none at all. */
const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .flatMap(([state, count]) => (count === 0 ? [] : `${count} ${state}`))
    .join(', ');

const sinceThen = (at: Date, now: Date): string =>
  at <= now
    ? `${duration(now.getTime() - at.getTime())} ago`
    : `${moment(at)}, which is in the future by this clock: readership doctor`;
