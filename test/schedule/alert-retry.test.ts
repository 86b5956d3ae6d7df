import { addMinutes } from 'date-fns';
import PostalMime from 'postal-mime';
import { expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { smtpTransport } from '../../src/mail/transport.js';
import { mailAlerts } from '../../src/schedule/alerts.js';
import { StepRunner } from '../../src/schedule/step-runner.js';
import { startMailServer } from '../mail/mail-server.js';
import { liveWarehouse } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { stepContext } from './step-context.js';

const OPS = 'ops@example.com';

it('a fault that could not be told of while it lasted is told of in one mail when it is over', async () => {
  const server = await startMailServer();
  onTestFinished(() => server.close());
  const warehouse = await liveWarehouse();
  let now = NOW;
  const run = async (
    work: () => Promise<never> | Promise<{ detail: string; summary: string; changed: boolean }>,
  ) => {
    const context = stepContext(warehouse, {
      settings: { mail: { from: 'docs@example.com' }, alerts: { to: [OPS] } },
      now: () => now,
      transport: () => smtpTransport(`smtp://127.0.0.1:${server.port}`),
    });
    await new StepRunner(context).step('export', work);
    await mailAlerts(context);
    now = addMinutes(now, 60);
    const states = await warehouse.query('SELECT state FROM deliveries', z.object({ state: z.string() }));
    return states.map(({ state }) => state);
  };
  const failing = () => run(() => Promise.reject(new Error('the server is down')));
  const working = () => run(() => Promise.resolve({ detail: '', summary: '1 day loaded', changed: true }));

  server.behaviours.set(OPS, [{ on: 'rcpt', do: 451 }]);
  expect(await failing()).toEqual(['waiting']);
  expect(await working()).toEqual(['sent']);
  expect(await working()).toEqual(['sent']);
  const mails = await Promise.all((server.accepted.get(OPS) ?? []).map((mail) => PostalMime.parse(mail)));
  expect(mails.map(({ subject }) => subject)).toEqual(['Readership: export failed, and works again']);

  // The next fault is told of at once, and its end by a second mail.
  expect(await failing()).toHaveLength(2);
  expect(await working()).toEqual(['sent', 'sent', 'sent']);
});
