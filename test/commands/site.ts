import { isSameHour } from 'date-fns';
import { expect } from 'vitest';
import { viewsResponseSchema } from '../../src/api/schema.js';
import { addDays, type Day, day, daysIn } from '../../src/day.js';
import type { Sandbox, WatchedOptions } from '../sandbox/faulty-sandbox.js';
import { expectWhole, storedDays } from '../export/stored-days.js';
import { startMailServer } from '../mail/mail-server.js';
import { inHistory, valuesOf } from '../open-history.js';
import { callCleanly, daysAgo, KEY, historyFile, serveSandbox, workspaceOf } from './workspace.js';
import { useSmallReports } from '../small-reports.js';

const SETTINGS = `
improve: { mode: apply, minWeeklyViews: 1 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

export type Site = Awaited<ReturnType<typeof openSite>>;

/**
 * A platform, a mail server, and a directory with a configuration for both and small reports, until the tests of the file
 * are over.
 * Each command is checked to end without a stack trace or the key in its output.
 */
export async function openSite(options: Partial<WatchedOptions> = {}, settings = SETTINGS) {
  const sandbox = await serveSandbox({ firstDay: daysAgo(45), pages: 120, jobSeconds: 3600, ...options });
  const mailServer = await startMailServer();
  const cwd = await useSmallReports(await workspaceOf(sandbox, settings));
  const env = { READERSHIP_API_KEY: KEY, READERSHIP_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}` };
  const run = (...args: string[]) => callCleanly(args, { cwd, env });
  /** How many arrived. */
  const emails = () => [...mailServer.accepted.values()].flat().length;
  return { sandbox, mailServer, cwd, env, run, emails, openedAt: new Date() };
}

/**
 * Checks that every day up to `last` is stored as the platform has it, that every job is known and
 * was created once, and that no email was sent twice.
 */
export async function expectAllOnce({ sandbox, mailServer, cwd, openedAt }: Site, last = daysAgo(1)) {
  const { days, jobs } = await inHistory(historyFile(cwd), async (history) => {
    await expectWhole(history);
    const known = await valuesOf(history, 'SELECT remote_id FROM jobs ORDER BY ALL');
    return { days: await storedDays(history), jobs: known };
  });
  expect(days.map(({ day }) => day)).toEqual(daysIn({ first: sandbox.firstDay, last }));
  for (const { day: at, state, human, ai, total } of days) {
    const platform = await totalsOf(sandbox, day(at));
    // On the hour, the platform counts late views of days that are not final.
    if (state === 'final' || isSameHour(openedAt, new Date()))
      expect({ human, ai, total }, at).toEqual(platform);
    else expect(total ?? Infinity, at).toBeLessThanOrEqual(platform.total);
  }
  const created = sandbox.inspect().jobs;
  expect(created.length).toBeGreaterThan(0);
  expect(jobs).toEqual(created.map(({ id }) => id).sort());
  const pages = created.map(({ prompt }) => /^"\/.*"$/m.exec(prompt)?.[0]);
  expect(new Set(pages).size).toBe(created.length);
  const mails = (mailServer.accepted.get('docs@example.com') ?? []).map(messageId);
  expect(mails.length).toBeGreaterThan(0);
  expect(new Set(mails).size).toBe(mails.length);
}

const messageId = (mail: Buffer): string => /^Message-ID: (\S+)/im.exec(mail.toString('latin1'))?.[1] ?? '';

/** What the platform currently reports for a range of days. */
export async function totalsOf({ baseUrl, projectId, apiKey }: Sandbox, first: Day, last = first) {
  const response = await fetch(
    `${baseUrl}/v1/analytics/${projectId}/views?dateFrom=${first}&dateTo=${addDays(last, 1)}&limit=1`,
    { headers: { authorization: `Bearer ${apiKey}` } },
  );
  return viewsResponseSchema.parse(await response.json()).totals;
}
