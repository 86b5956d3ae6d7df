import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { day } from '../../src/day.js';
import { outboxTransport } from '../../src/mail/transport.js';
import { mailLines } from '../../src/print/emails.js';
import { readDeliveries } from '../../src/state/emails.js';
import { findReport } from '../../src/reports/definition.js';
import { lastEnded } from '../../src/reports/period.js';
import { mailingsOf, sendMailing } from '../../src/steps/mailing.js';
import { reportStep } from '../../src/steps/report.js';
import { readWritten } from '../../src/mail/deliver.js';
import { runtimeIn } from '../run-cli.js';
import { useSmallReports } from '../small-reports.js';
import { loadDays, type MailSite, mailSite } from './site.js';

const CONFIGURED = {
  baseUrl: 'http://127.0.0.1',
  projects: [{ id: 'prj_1', name: 'Acme Docs' }],
  mail: { from: 'Readership <readership@example.com>' },
  reports: { weekly: { to: ['docs@example.com', 'lead@example.com'] } },
};
const settings = settingsSchema.parse(CONFIGURED);
const MONDAY = '2026-11-16T03:00:00Z';
const NEXT_MONDAY = '2026-11-23T03:00:00Z';

let test: MailSite;

beforeEach(async () => {
  test = await mailSite();
  await useSmallReports(test.directory);
  await loadDays(test.history, day('2026-10-12'), day('2026-11-15'));
});

const partsAt = (time: string, hasServer: boolean) => {
  const toFiles = { transport: () => outboxTransport(join(test.directory, 'outbox')) };
  const workspace = { settings, projects: settings.projects };
  return test.partsAt(time, { workspace, outgoing: hasServer ? {} : toFiles });
};
const report = (time: string, { hasServer }: { hasServer: boolean }) => reportStep(partsAt(time, hasServer));
const statesOf = (period: string) =>
  readDeliveries(test.state)
    .filter((one) => one.period === period)
    .map(({ recipient, state, attempts }) => `${recipient} ${state} ${attempts}`);
const received = async (recipient: string) =>
  (await test.mailsTo(recipient)).map(({ subject }) => /Nov \d+/.exec(subject ?? '')?.[0]);

describe('without a mail server', () => {
  it('an email is written to a file, once, and said not to be sent', async () => {
    const { summary, detail } = await report(MONDAY, { hasServer: false });
    expect(summary).toBe('2 pages rendered, 2 emails written to a file');
    expect((await report('2026-11-16T04:00:00Z', { hasServer: false })).detail.deliveries).toEqual([]);
    expect(statesOf('2026-W46')).toEqual(['docs@example.com written 1', 'lead@example.com written 1']);
    const [file = ''] = detail.deliveries.flatMap(({ note }) => note ?? []);
    expect(await readFile(file, 'utf8')).toMatch(/^To: docs@example.com\r?$/m);
    const { runtime: screen } = runtimeIn(test.directory);
    expect(mailLines({ reported: detail }, partsAt(MONDAY, false), screen)).toEqual([
      'weekly 2026-W46, Acme Docs: written to outbox',
      'Emails written to a file are not sent. Set READERSHIP_SMTP_URL in .env, then: readership run',
    ]);
  });

  it('it is sent once there is a server, if its week is still the last', async () => {
    await report(MONDAY, { hasServer: false });
    expect((await report('2026-11-20T03:00:00Z', { hasServer: true })).summary).toMatch(/, 2 emails sent$/);
    expect((await report('2026-11-20T04:00:00Z', { hasServer: true })).detail.deliveries).toEqual([]);
    expect(await received('docs@example.com')).toEqual(['Nov 9']);
    expect(statesOf('2026-W46')).toEqual(['docs@example.com sent 2', 'lead@example.com sent 2']);
  });

  it('is no longer called unsent once it is sent, its recipient is removed, or one about all projects was sent', async () => {
    await report(MONDAY, { hasServer: false });
    const unsent = (to: readonly string[], digest: boolean) => {
      const weekly = { to, digest };
      const changed = settingsSchema.parse({ ...CONFIGURED, reports: { weekly } });
      const workspace = { settings: changed, projects: changed.projects };
      return readWritten(test.state, workspace, new Date(MONDAY)).map(({ recipient }) => recipient);
    };
    const both = ['docs@example.com', 'lead@example.com'];
    expect(unsent(both, false)).toEqual(both);
    expect(unsent(['Lead@example.com'], false)).toEqual(['lead@example.com']);
    expect(unsent(both, true)).toEqual([]);
    await report('2026-11-20T03:00:00Z', { hasServer: true });
    expect(unsent(both, false)).toEqual([]);
  });

  it('that of an earlier week is not sent', async () => {
    await report(MONDAY, { hasServer: false });
    await loadDays(test.history, day('2026-11-16'), day('2026-11-22'));
    test.server.behaviors.set('lead@example.com', [{ on: 'rcpt', do: 450 }]);
    await report(NEXT_MONDAY, { hasServer: true });
    await report('2026-11-23T06:00:00Z', { hasServer: true });
    expect(await received('docs@example.com')).toEqual(['Nov 16']);
    expect(await received('lead@example.com')).toEqual(['Nov 16']);
    expect(statesOf('2026-W46')).toEqual(['docs@example.com written 1', 'lead@example.com written 1']);
  });

  it('what was sent before the server was taken away is not written or sent again', async () => {
    await report(MONDAY, { hasServer: true });
    await report('2026-11-17T03:00:00Z', { hasServer: false });
    const parts = partsAt('2026-11-17T04:00:00Z', false);
    const sources = { reader: parts.store, selectNow: () => Promise.resolve(undefined) };
    const period = lastEnded('week', new Date(MONDAY), settings.reports);
    // As `report send --force` does.
    for (const mailing of mailingsOf(parts.workspace, await findReport('weekly', test.directory))) {
      const recipients = mailing.audience.to;
      await sendMailing(parts, { mailing, period, recipients, admission: 'force', ...sources });
    }
    await report('2026-11-18T03:00:00Z', { hasServer: true });
    expect(await received('docs@example.com')).toEqual(['Nov 9']);
    expect(statesOf('2026-W46')).toEqual(['docs@example.com sent 1', 'lead@example.com sent 1']);
  });
});
