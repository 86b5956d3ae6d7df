import { addMinutes } from 'date-fns';
import PostalMime from 'postal-mime';
import { expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { TryLaterError } from '../../src/api/errors.js';
import { moment } from '../../src/format/days.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { mailAlerts } from '../../src/service/alerts.js';
import { StepRunner } from '../../src/steps/runner.js';
import { startMailServer } from '../mail/mail-server.js';
import { journalOf, liveWarehouse } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { stepContext } from '../steps/step-context.js';

const OPS = 'ops@example.com';

type Work = () => Promise<{ detail: string; summary: string; changed: boolean }>;

/** Export runs, an hour apart unless given, with a mail server and alert recipients. */
async function setUp() {
  const server = await startMailServer();
  onTestFinished(() => server.close());
  const warehouse = await liveWarehouse();
  const journal = await journalOf(warehouse);
  let now = NOW;
  const run = async (work: Work, hours = 1) => {
    const context = stepContext(warehouse, {
      journal,
      settings: { mail: { from: 'docs@example.com' }, alerts: { to: [OPS] } },
      now: () => now,
      transport: () => smtpTransport(`smtp://127.0.0.1:${server.port}`),
    });
    const runner = new StepRunner(context);
    await runner.step('export', work);
    await mailAlerts(context);
    now = addMinutes(now, hours * 60);
    const states = await warehouse.query('SELECT state FROM deliveries', z.object({ state: z.string() }));
    return { states: states.map(({ state }) => state), changed: runner.outageChanged };
  };
  const mails = () => Promise.all((server.accepted.get(OPS) ?? []).map((mail) => PostalMime.parse(mail)));
  return { server, run, mails };
}

const working: Work = () => Promise.resolve({ detail: '', summary: '1 day loaded', changed: false });

it('an outage whose email never arrived gets no email when it is over', async () => {
  const { server, run, mails } = await setUp();
  const statesAfter = async (work: Work) => (await run(work)).states;
  const failing = () => statesAfter(() => Promise.reject(new Error('the server is down')));

  server.behaviours.set(OPS, [{ on: 'rcpt', do: 451 }]);
  expect(await failing()).toEqual(['waiting']);
  expect(await statesAfter(working)).toEqual(['waiting']);
  expect(await statesAfter(working)).toEqual(['waiting']);
  expect(await mails()).toEqual([]);

  // The next outage is reported at once, and its end in a second email.
  expect(await failing()).toHaveLength(2);
  expect(await statesAfter(working)).toEqual(['waiting', 'sent', 'sent']);
});

it('a platform unreachable for more than a day is an outage: one email when it starts, one when it ends', async () => {
  const { run, mails } = await setUp();
  const operation = { name: 'list views', method: 'GET', url: 'https://docs.example.com/views' } as const;
  const outOfReach: Work = () =>
    Promise.reject(new TryLaterError(operation, 'unreachable', 'the certificate has expired'));
  const putOff = (hours?: number) =>
    run(() => outOfReach().catch((error: unknown) => ({ ...nothing, error })), hours);
  const nothing = { detail: '', summary: '0 days loaded', changed: false };

  await run(working);
  expect(await putOff(24)).toEqual({ states: [], changed: false });
  expect(await putOff()).toEqual({ states: [], changed: false });
  // From now on `status` must show it too, so it is published.
  expect(await putOff()).toEqual({ states: ['sent'], changed: true });
  expect(await putOff(24 * 7)).toEqual({ states: ['sent'], changed: false });
  expect(await run(working)).toEqual({ states: ['sent', 'sent'], changed: true });
  const [begins, over, ...more] = await mails();
  expect(more).toEqual([]);
  expect(begins?.subject).toBe('Readership: export fails');
  expect(begins?.text).toContain(
    `export has failed since ${moment(addMinutes(NOW, 60))}:\n\n0 days loaded; Could not list views: the certificate has expired`,
  );
  expect(over?.subject).toBe('Readership: export works again');
});
