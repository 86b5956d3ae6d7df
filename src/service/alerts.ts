import { subDays } from 'date-fns';
import Handlebars from 'handlebars';
import { z } from 'zod';
import { isSameRecipient } from '../config/recipients.js';
import { addDays, lastEndedDay } from '../day.js';
import { messageOf } from '../errors.js';
import { asInvoked, type Invocation } from '../format/advice.js';
import { viewsBy } from '../format/audience.js';
import { dayRange, longDay, moment } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import { composeAll, type Notice } from '../mail/compose.js';
import { deliver } from '../mail/deliver.js';
import { addSent, ALERT, ALL_PROJECTS, type Sent, sentOf } from '../mail/delivery.js';
import { type Delivery, readDeliveries } from '../state/emails.js';
import type { Parts, StepOutage, StepRunner } from '../steps/step.js';
import { connectionFailure, requestUrl } from '../network.js';
import { timeLimit } from '../sleep.js';
import { type Outage, readOutages } from '../state/runs.js';
import { dayColumn, readSql } from '../columns.js';

/** An alert, whether or not it was sent. */
interface Alert {
  /** Identifies it among the deliveries, together with its project if it is about one. */
  readonly period: string;
  readonly project?: string;
  /** For the subject. */
  readonly fact: string;
  readonly text: string;
  readonly data: object;
}

/**
 * Sends an alert about each outage once, and about its end to the same recipients, and one about each drop in views. Never
 * throws, but says why none could be sent, unless an outage of a step says the same.
 */
export async function sendAlerts(parts: Parts, said: readonly StepOutage[] = []): Promise<void> {
  const { workspace, state, sender, session } = parts;
  const { to } = workspace.settings.alerts;
  if (to.length === 0 || session.signal.aborted) return;
  try {
    if (sender.otherPlace() !== undefined) return;
    const deliveries = readDeliveries(state);
    const outages = readOutages(state, session.now()).filter((one) => !isUnsettled(one, deliveries));
    const sent = deliveries.filter(({ report }) => report === ALERT);
    const drops = await dropAlerts(parts, sent);
    const attempted: Sent = { deliveries: [], pausedBy: undefined, silentHosts: new Set() };
    for (const recipient of to) {
      const known = sent.filter((delivery) => isSameRecipient(delivery.recipient, recipient));
      const alerts: Alert[] = [...outages.flatMap((outage) => outageAlert(outage, known)), ...drops];
      for (const alert of alerts) {
        const key = { report: ALERT, project: alert.project ?? ALL_PROJECTS, period: alert.period };
        const messages = await composeAll(parts, alertNotice(alert, workspace.invocation), key, [recipient]);
        addSent(attempted, await deliver(parts, messages, 'due'));
      }
    }
    const { pausedBy } = attempted;
    if (pausedBy !== undefined && said.some(({ error }) => messageOf(error).includes(pausedBy)))
      attempted.pausedBy = undefined;
    const { error } = sentOf(attempted);
    if (error !== undefined) session.observer.onAlertFailed?.(error.message);
  } catch (error) {
    const why = messageOf(error);
    if (said.some((outage) => messageOf(outage.error) === why)) return;
    session.observer.onAlertFailed?.(`No alert could be sent: ${why}`);
  }
}

function alertNotice({ fact, text: words, data }: Alert, invocation: Invocation): Notice {
  const text = asInvoked(words, invocation);
  const subject = `Readership: ${fact}`;
  const html = `<pre style="white-space: pre-wrap">${Handlebars.escapeExpression(text)}</pre>`;
  return {
    kind: 'alert',
    subject,
    chat: text,
    pageUrl: null,
    data,
    figures: null,
    email: () => Promise.resolve({ subject, text, html, pictures: [] }),
  };
}

/** Whether emails or posts of an outage that is over are still undelivered, or may be. */
const isUnsettled = ({ step, since, over_at }: Outage, deliveries: readonly Delivery[]): boolean =>
  step === 'report' &&
  over_at !== null &&
  deliveries.some(
    ({ report, state, tried_at }) =>
      report !== ALERT && ['failed', 'unknown'].includes(state) && tried_at >= subDays(since, 1),
  );

/** The alert about an outage, or about its end, given what was already `sent`. */
function outageAlert({ step, words, since, over_at: overAt }: Outage, sent: Delivery[]) {
  const period = `${step} ${since.toISOString()}`;
  const data = { step, since, overAt, words };
  if (overAt === null) {
    const what = `${step} has failed since ${moment(since)}:\n\n${words ?? ''}\n\n`;
    const text = `${what}Readership retries what it can. For details:  readership status, readership doctor`;
    return [{ period, fact: `${step} fails`, text, data }];
  }
  // Only recipients of the alert about the outage are notified of its end.
  const first = sent.find((delivery) => delivery.period === period);
  if (first?.state !== 'sent' && first?.state !== 'unknown') return [];
  const text = `${step} failed from ${moment(since)} and has worked again since ${moment(overAt)}.`;
  return [{ period: `${period} over`, fact: `${step} works again`, text, data }];
}

const NEW_DROPS = readSql(import.meta.url, 'statements/new-drops.sql');

const dropRow = z.object({
  project: z.string(),
  day: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  expected: z.number(),
  low: z.int(),
  period: z.string(),
});

/** The alerts about the drops that began in the last week, given the alerts that were sent. */
async function dropAlerts({ workspace, store, session }: Parts, sent: readonly Delivery[]): Promise<Alert[]> {
  const drops = await store.query(NEW_DROPS, dropRow, {
    last_day: lastEndedDay(session.now()),
    sent: JSON.stringify(sent.map(({ project, period }) => ({ project, period }))),
  });
  return drops.flatMap(({ period, ...drop }) => {
    const { day, audience, views, expected, low } = drop;
    const project = workspace.projects.find(({ id }) => id === drop.project);
    if (project === undefined) return [];
    const { id, name } = project;
    const range = dayRange({ first: day, last: day });
    return {
      project: id,
      period,
      fact: `${name}, ${longDay(day)}: ${viewsBy(audience, views)}, about ${thousands(expected)} expected`,
      text:
        `${name} had ${viewsBy(audience, views)} on ${range}. About ${thousands(expected)} were expected, and ` +
        `normal variation explains no fewer than ${thousands(low)}. Tracking may have stopped, the site may have been ` +
        `down, or it was a holiday.\n\nThe days:  readership sql "FROM site_days WHERE project = '${id.replaceAll("'", "''")}' ` +
        `AND day >= '${addDays(day, -14)}' ORDER BY day"`,
      data: drop,
    };
  });
}

/** How long a monitoring service may take to answer. */
const PING_TIMEOUT_MS = 5_000;

/** Exports between two pings. An export that has to wait sends no second one, so the monitor waits too. */
export async function pinging<Detail>(
  { workspace, sender, session }: Parts,
  run: StepRunner,
  work: () => Promise<Detail>,
): Promise<Detail> {
  const { pingUrl } = workspace.settings.alerts;
  const { signal, observer } = session;
  if (pingUrl === undefined || sender.otherPlace() !== undefined || !run.isToDo('export')) return work();
  // The path of the address is a secret.
  const monitor = `The ping to ${new URL(pingUrl).origin} (alerts.pingUrl)`;
  const ping = async (suffix: '/start' | '/fail' | '') => {
    try {
      const inTime = timeLimit(PING_TIMEOUT_MS, signal);
      const { statusCode, body } = await requestUrl(pingUrl + suffix, { signal: inTime });
      await body.dump();
      if (statusCode >= 400) observer.onAlertFailed?.(`${monitor} got status ${statusCode}.`);
    } catch (error) {
      observer.onAlertFailed?.(`${monitor} failed: ${connectionFailure(error)}`);
    }
  };
  await ping('/start');
  const result = await work().catch(async (error: unknown) => {
    // Not even the failure could be recorded.
    await ping('/fail');
    throw error;
  });
  const outcome = run.outages.find(({ step }) => step === 'export')?.outcome;
  if (outcome === undefined) await ping('');
  if (outcome === 'failed') await ping('/fail');
  return result;
}
