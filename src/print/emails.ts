import { relative } from 'node:path';
import { type Shard, shardOption } from '../config/shard.js';
import type { Runtime } from '../app/workspace.js';
import { moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { escapeUnsafe } from '../format/text.js';
import { ALERT, type Delivery, type DeliveryKey, isAboutAll, withoutCorrection } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import type { StepContext } from '../steps/step.js';
import type { LoopOutcome } from '../service/loop.js';
import type { HeldReport } from '../steps/report.js';

/**
 * The emails of a run as lines: those of unknown outcome first, then those sent, then those
 * waiting.
 */
export async function mailLines(
  outcome: LoopOutcome,
  { warehouse, projects, shard }: StepContext,
  runtime: Runtime,
): Promise<string[]> {
  const { held = [], deliveries: attempted = [] } = outcome.reported ?? {};
  const all = (await readDeliveries(warehouse)).filter(
    ({ project, report }) =>
      report !== ALERT && (isAboutAll(project) || projects.some(({ id }) => id === project)),
  );
  const isNew = (delivery: Delivery) => attempted.some((other) => other.message_id === delivery.message_id);
  const unknown = all.filter(({ state }) => state === 'unknown');
  const isLatest = ({ report, project, period }: Delivery) =>
    all.every((other) => other.report !== report || other.project !== project || other.period <= period);
  const known = all.filter(
    (delivery) => delivery.state !== 'unknown' && (isLatest(delivery) || isNew(delivery)),
  );
  return [
    ...unknown.map((delivery) => deliveryLine(delivery, shard, runtime)),
    ...known.map((delivery) => outcomeLine(delivery, isNew(delivery), shard, runtime)),
    ...held.map(heldLine),
  ];
}

/** The outcome of a delivery, or that it was sent before. */
export const outcomeLine = (
  delivery: Delivery,
  isNew: boolean,
  shard: Shard | undefined,
  runtime: Runtime,
): string =>
  isNew || delivery.state !== 'sent' ? deliveryLine(delivery, shard, runtime) : hadLine(delivery);

/** The outcome of a delivery, and what to do about it. */
export function deliveryLine(
  delivery: Delivery,
  shard: Shard | undefined,
  { output, workingDirectory }: Runtime,
): string {
  const { red, yellow, cyan } = output.colors;
  const { report, period, recipient, state, via, next_attempt_at, note } = delivery;
  const what = escapeUnsafe(`${report} ${period} to ${recipient}`);
  const words = escapeUnsafe(note ?? '');
  const again = escapeUnsafe(resendCommand(delivery, shard));
  switch (state) {
    case 'sent':
      return via === 'outbox' && note !== null
        ? `${what}: written to ${cyan(relative(workingDirectory, note))}`
        : `${what}: sent (${words})`;
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
        `${what}: may or may not have arrived (${words}). It will not be sent again automatically. Ask the recipient, then: ${settleCommands(delivery, shard)}`,
      );
  }
}

const projectOption = (project: string): string => (isAboutAll(project) ? '' : ` --project ${project}`);

/** The commands that settle a delivery of unknown outcome. The period is quoted for the shell. */
export const settleCommands = (
  { report, period, project, recipient }: DeliveryKey,
  shard: Shard | undefined,
): string => {
  const quoted = period.includes(' ') ? `'${period}'` : period;
  return `readership report ${report} --period ${quoted}${projectOption(project)}${shardOption(shard)} --delivered ${recipient}, or --not-delivered ${recipient}`;
};

/**
 * The command that sends only this report again, only to this recipient. By then, the report has
 * the corrected numbers.
 */
export const resendCommand = (
  { report, period, project, recipient }: DeliveryKey,
  shard: Shard | undefined,
): string =>
  `readership report ${report} --period ${withoutCorrection(period)}${projectOption(project)} --send --force --to ${recipient}${shardOption(shard)}`;

/** For a report that was already sent. */
const hadLine = ({ report, period, recipient, settled_at }: Delivery): string =>
  escapeUnsafe(
    `${report} ${period} to ${recipient}: already sent${settled_at === null ? '' : ` on ${moment(settled_at)}`}`,
  );

const heldLine = ({ report, period, due }: HeldReport): string =>
  `${report} ${period}: waiting for ${counted(due.missingDays, 'missing day')} until ${moment(due.until)} at the latest`;
