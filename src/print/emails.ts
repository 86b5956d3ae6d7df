import { dirname, relative } from 'node:path';
import type { Runtime } from '../app/workspace.js';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { inSequence, moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { escapeUnsafe } from '../format/text.js';
import { ALERT, ALL_PROJECTS } from '../mail/delivery.js';
import { type Delivery, type DeliveryKey, readDeliveries } from '../state/emails.js';
import type { Parts } from '../steps/step.js';
import { readWritten } from '../mail/deliver.js';
import type { RunOutcome } from '../service/run.js';

type EmailScreen = Pick<Runtime, 'output' | 'workingDirectory'>;

/** The emails of a run as lines, but for those of unknown outcome: first what leaves something to do, then those sent. */
export function mailLines(
  outcome: Pick<RunOutcome, 'reported'>,
  { workspace, state }: Pick<Parts, 'workspace' | 'state'>,
  runtime: EmailScreen & Pick<Runtime, 'now'>,
): string[] {
  const { projects } = workspace;
  const { held = [], deliveries: attempted = [] } = outcome.reported ?? {};
  const all = readDeliveries(state).filter(
    ({ project, report }) =>
      report !== ALERT && (project === ALL_PROJECTS || projects.some(({ id }) => id === project)),
  );
  const isNew = (delivery: Delivery) => attempted.some((other) => other.message_id === delivery.message_id);
  const isLatest = ({ report, project, period }: Delivery) =>
    all.every((other) => other.report !== report || other.project !== project || other.period <= period);
  const written = readWritten(state, workspace, runtime.now()).map(({ attempt }) => attempt);
  const isShown = (one: Delivery) =>
    one.state !== 'unknown' &&
    (isNew(one) || (one.state === 'written' ? written.includes(one.attempt) : isLatest(one)));
  const known = all.filter(isShown);
  const isWritten = known.some(({ state }) => state === 'written') && workspace.invocation.sandbox !== true;
  const nameOf = (id: string): string =>
    id === ALL_PROJECTS ? 'all projects' : (projects.find((project) => project.id === id)?.name ?? id);
  return [
    ...known
      .filter(({ state }) => state !== 'sent' && state !== 'written')
      .map((delivery) => deliveryLine(delivery, runtime)),
    ...sentLines(known, isNew, nameOf, runtime),
    ...(isWritten
      ? [`Emails written to a file are not sent. Set ${SMTP_URL_VARIABLE} in .env, then: readership run`]
      : []),
    ...held.map(
      ({ report, period, project, for: what, until }) =>
        `${report} ${period}, ${nameOf(project)}: waiting for ${what}${until === null ? '' : ` until ${moment(until)} at the latest`}`,
    ),
  ];
}

/** One line per report that was sent and project, with its recipients, or the directory of its files. */
function sentLines(
  deliveries: readonly Delivery[],
  isNew: (delivery: Delivery) => boolean,
  nameOf: (project: string) => string,
  { output, workingDirectory }: EmailScreen,
): string[] {
  const found = new Map<string, Delivery[]>();
  for (const delivery of deliveries) {
    const { report, period, project, state } = delivery;
    if (state !== 'sent' && state !== 'written') continue;
    const how = `${isNew(delivery) ? '' : 'already '}${state} to`;
    const line = `${report} ${period}, ${nameOf(project)}: ${how}`;
    found.set(line, [...(found.get(line) ?? []), delivery]);
  }
  return [...found].map(([line, deliveries]) => {
    const notes = deliveries.flatMap(({ note }) => note ?? []);
    const [file = ''] = notes;
    const where = relative(workingDirectory, deliveries.length === 1 ? file : dirname(file));
    const to =
      deliveries.length > 2
        ? counted(deliveries.length, 'recipient')
        : inSequence(deliveries.map(({ recipient }) => recipient));
    return `${escapeUnsafe(line)} ${line.endsWith('written to') ? output.colors.cyan(where) : escapeUnsafe(to)}`;
  });
}

/** The outcome of a delivery, and what to do about it; of one that is not new, when it was sent. */
export function deliveryLine(
  delivery: Delivery,
  { output, workingDirectory }: EmailScreen,
  { isNew } = { isNew: true },
): string {
  const { red, yellow, cyan } = output.colors;
  const { report, period, recipient, state, settled_at, next_attempt_at, note } = delivery;
  const what = escapeUnsafe(`${report} ${period} to ${recipient}`);
  const words = escapeUnsafe(note ?? '');
  const again = escapeUnsafe(resendCommand(delivery));
  switch (state) {
    case 'sent':
      if (!isNew) return `${what}: already sent${settled_at === null ? '' : ` on ${moment(settled_at)}`}`;
      return `${what}: sent (${words})`;
    case 'written':
      return `${what}: written to ${cyan(relative(workingDirectory, note ?? ''))}, because there is no mail server`;
    case 'sending':
      return `${what}: being sent`;
    case 'waiting':
      return yellow(
        `${what}: not delivered yet (${words}); retried ${next_attempt_at === null ? 'by the next run' : `from ${moment(next_attempt_at)}`}`,
      );
    case 'failed':
      return red(`${what}: not delivered (${words}). When that is fixed: ${again}`);
    case 'unknown':
      return red(
        `${what}: may or may not have arrived (${words}). It will not be sent again automatically. Ask the recipient, then: ${settleCommands(delivery)}`,
      );
  }
}

const projectOption = (project: string): string => (project === ALL_PROJECTS ? '' : ` --project ${project}`);

/** The commands that settle a delivery of unknown outcome. The period is quoted for the shell. */
export function settleCommands(delivery: DeliveryKey): string {
  const { report, period, project, recipient } = delivery;
  const quoted = period.includes(' ') ? `'${period}'` : period;
  return `readership report resolve ${report} --period ${quoted}${projectOption(project)} --delivered ${recipient}, or --not-delivered ${recipient}`;
}

/** The command that sends only this report again, only to this recipient. */
export const resendCommand = ({ report, period, project, recipient }: DeliveryKey): string =>
  `readership report send ${report} --period ${period}${projectOption(project)} --force --to ${recipient}`;
