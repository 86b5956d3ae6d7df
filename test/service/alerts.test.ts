import { addMinutes, subDays } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { TryLaterError } from '../../src/api/errors.js';
import { moment } from '../../src/format/days.js';
import { readDeliveries, storeDelivery } from '../../src/state/emails.js';
import { sendAlerts } from '../../src/service/alerts.js';
import { sentOf } from '../../src/mail/delivery.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { StepRunner } from '../../src/steps/step.js';
import { day } from '../../src/day.js';
import { startMailServer } from '../mail/mail-server.js';
import { isGenuine, postTo } from '../mail/posts.js';
import { loadDays, mailSite } from '../mail/site.js';
import { execute } from '../open-history.js';
import { serve } from '../serve.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { partsOf } from '../steps/parts-of.js';

const OPS = 'ops@example.com';

type Work = () => Promise<{ detail: string; summary: string }>;

/** Runs of a step, an hour apart unless given, with a mail server and alert recipients. */
async function setUp(step: 'export' | 'report' = 'export') {
  const { server, history, state, sender, transport, mailsTo } = await mailSite();
  let now = NOW;
  const run = async (
    work: Work,
    hours = 1,
    { signal }: Pick<AbortController, 'signal'> = new AbortController(),
  ) => {
    const parts = partsOf(history, {
      state,
      sender,
      settings: { mail: { from: 'docs@example.com' }, alerts: { to: [OPS] } },
      workspace: { invocation: { config: 'staging.yaml' } },
      outgoing: { transport },
      session: { now: () => now },
    });
    await new StepRunner(parts).step(step, work);
    await sendAlerts({ ...parts, session: { ...parts.session, signal } });
    now = addMinutes(now, hours * 60);
    return { states: readDeliveries(state).map((one) => one.state) };
  };
  return { server, state, run, mails: () => mailsTo(OPS) };
}

const working: Work = () => Promise.resolve({ detail: '', summary: '1 day loaded' });

it('an outage whose email never arrived gets no email when it is over', async () => {
  const { server, run, mails } = await setUp();
  const statesAfter = async (work: Work) => (await run(work)).states;
  const failing = () => statesAfter(() => Promise.reject(new Error('the server is down')));

  server.behaviors.set(OPS, [{ on: 'rcpt', do: 451 }]);
  expect(await failing()).toEqual(['waiting']);
  expect(await statesAfter(working)).toEqual(['waiting']);
  expect(await statesAfter(working)).toEqual(['waiting']);
  expect(await mails()).toEqual([]);

  // The next outage is reported at once, and its end in a second email.
  expect(await failing()).toHaveLength(2);
  expect(await statesAfter(working)).toEqual(['waiting', 'sent', 'sent']);
});

it('an outage whose email may have arrived gets an email when it is over', async () => {
  const { server, run, mails } = await setUp();
  server.behaviors.set(OPS, [{ on: 'data', do: 'drop-accepted' }]);
  const failing: Work = () => Promise.reject(new Error('the server is down'));
  expect((await run(failing)).states).toEqual(['unknown']);
  expect((await run(working)).states).toEqual(['unknown', 'sent']);
  const subjects = (await mails()).map(({ subject }) => subject);
  expect(subjects).toEqual(['Readership: export fails', 'Readership: export works again']);
});

it('why no alert could be sent is said, unless a step says it already', async () => {
  const { history, state, sender } = await mailSite();
  const said: string[] = [];
  const parts = partsOf(history, {
    state,
    sender,
    settings: { alerts: { to: [OPS] } },
    session: { now: () => NOW, observer: { onAlertFailed: (words) => said.push(words) } },
  });
  const error = new Error('the disk is full');
  const failing = { ...parts, store: Object.assign(history, { query: () => Promise.reject(error) }) };
  await sendAlerts(failing, [{ step: 'export', outcome: 'failed', error }]);
  expect(said).toEqual([]);
  await sendAlerts(failing);
  expect(said).toEqual(['No alert could be sent: the disk is full']);
});

it('that the mail server takes no more is said once, by the step or with the alerts', async () => {
  const { history, state, sender } = await mailSite();
  const gone = await startMailServer();
  await gone.close();
  const said: string[] = [];
  const transport = smtpTransport(`smtp://127.0.0.1:${gone.port}`);
  const parts = partsOf(history, {
    state,
    sender,
    settings: { mail: { from: 'docs@example.com' }, alerts: { to: [OPS, 'lead@example.com'] } },
    outgoing: { transport: () => transport },
    session: { now: () => NOW, observer: { onAlertFailed: (words) => said.push(words) } },
  });
  await new StepRunner(parts).step('export', () => Promise.reject(new Error('the disk is full')));
  await sendAlerts(parts);
  expect(said).toEqual([expect.stringMatching(/^The mail server is not accepting emails: .*ECONNREFUSED/)]);
  const { error } = sentOf({ deliveries: [], pausedBy: transport.pausedBy(), silentHosts: new Set() });
  await sendAlerts(parts, [{ step: 'report', outcome: 'later', error }]);
  expect(said).toHaveLength(1);
  expect(readDeliveries(state)).toEqual([]);
});

it('a platform unreachable for more than a day is an outage: one email when it starts, one when it ends', async () => {
  const { run, mails } = await setUp();
  const operation = { name: 'list views', method: 'GET', url: 'https://docs.example.com/views' } as const;
  const outOfReach: Work = () =>
    Promise.reject(new TryLaterError(operation, 'unreachable', 'the certificate has expired'));
  const putOff = (hours?: number) =>
    run(() => outOfReach().catch((error: unknown) => ({ ...nothing, error })), hours);
  const nothing = { detail: '', summary: '0 days loaded' };

  await run(working);
  expect(await putOff(24)).toEqual({ states: [] });
  expect(await putOff()).toEqual({ states: [] });
  expect(await putOff()).toEqual({ states: ['sent'] });
  expect(await putOff(24 * 7)).toEqual({ states: ['sent'] });
  expect(await run(working)).toEqual({ states: ['sent', 'sent'] });
  const [begins, over, ...more] = await mails();
  expect(more).toEqual([]);
  expect(begins?.subject).toBe('Readership: export fails');
  expect(begins?.text).toContain(
    `export has failed since ${moment(addMinutes(NOW, 60))}:\n\n0 days loaded; Could not list views: the certificate has expired`,
  );
  // Typed in the workspace, the command finds it.
  expect(begins?.text).toContain('readership status --config staging.yaml');
  expect(over?.subject).toBe('Readership: export works again');
});

it.each([
  ['failed', 0, false],
  ['unknown', 0, false],
  ['sent', 0, true],
  // What failed long before the outage is no reason of it.
  ['failed', 2, true],
] as const)(
  'a report whose email is %s, tried %i days before the outage, works again: %s',
  async (outcome, days, isOver) => {
    const { state, run, mails } = await setUp('report');
    await run(() => Promise.reject(new Error('no such user')));
    const [alert = expect.fail()] = readDeliveries(state);
    const weekly = { ...alert, report: 'weekly', period: '2026-W46', attempt: 100 };
    const tried_at = subDays(alert.tried_at, days);
    await state.transaction(() => storeDelivery(state, { ...weekly, state: outcome, tried_at }));
    await run(working);
    const subjects = (await mails()).map(({ subject }) => subject);
    const over = isOver ? ['Readership: report works again'] : [];
    expect(subjects).toEqual(['Readership: report fails', ...over]);
  },
);

it('no alert is sent after an interruption', async () => {
  const { run, mails } = await setUp();
  await run(() => Promise.reject(new Error('the server is down')), 1, { signal: AbortSignal.abort() });
  expect(await mails()).toEqual([]);
});

describe('a day on which views fall', () => {
  const quiet = day('2026-08-03');

  /** A quiet site to Sunday, 15 November, and alerts by a clock that the test sets; OPS gets email, and chat a post. */
  async function setUpSite() {
    const { history, state, sender, transport, mailsTo } = await mailSite();
    const chat = await serve((_, response) => response.end('ok'));
    await loadDays(history, quiet, day('2026-11-15'));
    const alertsAt = async (time: string) => {
      const parts = partsOf(history, {
        state,
        sender,
        settings: {
          projects: [{ id: 'prj_1', name: 'Acme <Docs>' }],
          mail: { from: 'docs@example.com' },
          channels: { chat: { kind: 'webhook' } },
          alerts: { to: [OPS, 'chat'] },
        },
        outgoing: {
          transport,
          channels: new Map([['chat', postTo('webhook', chat.baseUrl).channel]]),
        },
        session: { now: () => new Date(time), observer: { onAlertFailed: (words) => expect.fail(words) } },
      });
      await sendAlerts(parts);
      return (await mailsTo(OPS)).map(({ subject }) => subject);
    };
    const setViews = (date: string, views: string, state = 'final') =>
      execute(history, `UPDATE days SET ${views}, state = '${state}' WHERE day = DATE '${date}'`);
    return { alertsAt, setViews, chat, mailsTo };
  }

  it('is reported once, by email and to the channel, however long it lasts', async () => {
    const { alertsAt, setViews, chat, mailsTo } = await setUpSite();
    expect(await alertsAt('2026-11-16T03:00:00Z')).toEqual([]);
    await setViews('2026-11-14', 'human = 10');
    const subject = 'Readership: Acme <Docs>, Nov 14, 2026: 10 human views, about 764 expected';
    expect(await alertsAt('2026-11-16T04:00:00Z')).toEqual([subject]);
    await setViews('2026-11-15', 'human = 12');
    await setViews('2026-11-13', 'human = 9');
    for (const time of ['2026-11-16T05:00:00Z', '2026-11-18T05:00:00Z', '2026-12-18T05:00:00Z'])
      expect(await alertsAt(time)).toEqual([subject]);
    const [{ text, html } = expect.fail()] = await mailsTo(OPS);
    expect(html).toContain('Acme &lt;Docs&gt; had 10 human views');
    expect(text).toMatch(/Acme <Docs> had 10 human views on Sat, Nov 14, 2026\. About 764 were expected/);
    const [post, ...more] = chat.seen;
    expect(more).toEqual([]);
    expect(isGenuine(post?.headers ?? {}, post?.body ?? '')).toBe(true);
    expect(JSON.parse(post?.body ?? '')).toMatchObject({
      type: 'alert',
      data: { project: 'prj_1', period: 'drop human 2026-11-14', content: { views: 10, audience: 'human' } },
    });
  });

  it('is not reported when it is old news, within chance, or when the day may still grow', async () => {
    const { alertsAt, setViews } = await setUpSite();
    await setViews('2026-11-07', 'human = 10');
    await setViews('2026-11-14', 'human = 500');
    await setViews('2026-11-15', 'ai = 150', 'provisional');
    expect(await alertsAt('2026-11-16T03:00:00Z')).toEqual([]);
    // The same count is a fall once it is final, and none at all is one at once.
    await setViews('2026-11-15', 'ai = 150');
    expect(await alertsAt('2026-11-18T03:00:00Z')).toEqual([
      'Readership: Acme <Docs>, Nov 15, 2026: 150 AI views, about 364 expected',
    ]);
  });

  it('without any view is reported while it is provisional', async () => {
    const { alertsAt, setViews } = await setUpSite();
    await setViews('2026-11-14', 'ai = 0', 'provisional');
    await setViews('2026-11-15', 'human = 0', 'provisional');
    expect(await alertsAt('2026-11-16T03:00:00Z')).toHaveLength(2);
  });
});
