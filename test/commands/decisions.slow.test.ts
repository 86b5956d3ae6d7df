import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openState } from '../../src/state/open.js';
import { readJobs } from '../../src/state/jobs.js';
import { agentSite } from '../agents/agent-site.js';
import { steadyPages } from '../agents/reading.js';
import { afterTest } from '../cleanup.js';
import { callCli, startCli } from '../run-cli.js';
import { startSandbox } from '../sandbox/faulty-sandbox.js';
import { otherProcess } from '../state/other-process.js';
import { endedWith } from './workspace.js';
import { useSmallReports } from '../small-reports.js';

/** A workspace whose pages 1 to 6 may get jobs, as its commands and its state have it. */
async function decided(more = '') {
  const sandbox = await startSandbox({ now: () => new Date(), jobSeconds: 3600 });
  const site = await agentSite(sandbox, steadyPages(6), `{ maxJobsPerWeek: 20 }${more}`);
  await useSmallReports(site.cwd);
  const dataDir = join(site.cwd, 'data');
  const state = (await openState(dataDir)) ?? expect.fail('no state');
  afterTest(() => {
    state.close();
  });
  const run = (...args: string[]) => callCli(args, site);
  return {
    sandbox,
    site,
    dataDir,
    run,
    jobs: () => readJobs(state, sandbox.projectId),
    created: () => sandbox.inspect().jobs.length,
    digestOf: async (page: string) => {
      const { stdout } = await run('improve', '--verbose');
      return new RegExp(`${page}#(\\w+):`).exec(stdout)?.[1] ?? expect.fail(stdout);
    },
  };
}

it('what is decided while an export runs is stored at once, and sent afterwards', async () => {
  const { dataDir, run, jobs, created, digestOf } = await decided();
  const digest = await digestOf('/guides/page-2');
  const exporting = await otherProcess(dataDir);
  await exporting.does('acquire', 0);
  expect((await run('improve', '--apply', '/guides/page-2#00000000')).stdout).toContain(
    'no job: its prompt changed since 00000000 was shown',
  );
  const approved = endedWith(0, await run('improve', '--apply', `/guides/page-2#${digest}`));
  expect(approved.stdout).toBe(
    '/guides/page-2: job 1 is approved. The next run sends it, or readership start within a minute.\n',
  );
  const skipped = endedWith(0, await run('improve', '--skip', '/guides/page-4'));
  expect(skipped.stdout).toContain('/guides/page-4: skipped');
  expect((await run('improve', '--apply', '/guides/page-4')).stdout).toContain(
    'no job: skipped by your team',
  );
  endedWith(0, await run('improve', '--unskip', '/guides/page-4'));
  expect(jobs().map(({ state, is_approved }) => [state, is_approved])).toEqual([['planned', true]]);
  expect(created()).toBe(0);
  await exporting.does('release');
  endedWith(0, await run('jobs', 'poll'));
  expect(jobs().map(({ state }) => state)).toEqual(['active']);
  expect(created()).toBe(1);
});

it('`readership start` sends what was approved within a minute, whatever its schedules say', async () => {
  const { site, dataDir, run, jobs } = await decided(
    "\nschedule: { poll: '0 0 1 1 *', report: '0 0 1 1 *' }",
  );
  const service = startCli(['start'], site);
  await service.until(/"step":"report","outcome":"\w+"/);
  const exporting = await otherProcess(dataDir);
  await exporting.does('acquire', 30_000);
  // The service has loaded days of the platform, with its own pages.
  const { stdout } = await run('improve', '--verbose');
  const page = /^ *(\/\S+)#\w+:/m.exec(stdout)?.[1] ?? expect.fail(stdout);
  endedWith(0, await run('improve', '--apply', page));
  await exporting.does('release');
  // A minute, and what a busy machine needs.
  await expect.poll(() => jobs()[0]?.state, { interval: 100, timeout: 150_000 }).toBe('active');
  service.child.kill('SIGTERM');
  expect((await service.result).code).toBe(0);
});
