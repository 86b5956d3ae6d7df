import { expect, it } from 'vitest';
import { startSandbox } from '../sandbox/faulty-sandbox.js';
import { callCli } from '../run-cli.js';
import { agentSite } from './agent-site.js';
import { steadyPages } from './reading.js';

it('a job that the platform no longer has is ended only by hand', async () => {
  const sandbox = await startSandbox({ now: () => new Date(), jobSeconds: 3600 });
  const site = await agentSite(sandbox, steadyPages(2), '{ maxJobsPerWeek: 20, readingShare: 1 }');
  const run = (...args: string[]) => callCli(args, site);
  const gone = (id: number) => run('jobs', 'resolve', String(id), '--gone');
  await run('improve', '--apply');
  expect(sandbox.inspect().jobs).toHaveLength(2);

  const known = await gone(1);
  expect([known.code, known.stderr]).toEqual([
    2,
    expect.stringMatching('Job 1 still exists on the platform'),
  ]);

  sandbox.setFaults([{ on: 'job', kind: 'status', status: 404 }]);
  const asked = await run('jobs', 'poll', '--watch');
  expect(asked.code).toBe(1);
  expect(asked.stderr).toMatch(/poll failed:.+: readership jobs resolve \d --gone/);
  const needed = await run('status');
  expect([needed.code, needed.stdout]).toEqual([1, expect.stringMatching(/jobs resolve \d --gone/)]);
  expect((await run('jobs', 'list')).stdout.match(/ active /g)).toHaveLength(2);

  for (const id of [1, 2]) {
    const ended = await gone(id);
    expect([ended.code, ended.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^job \d +failed .+ the platform no longer has it; ended manually on \w+ \d+, \d{4}\n$/,
      ),
    ]);
  }
  expect((await run('jobs', 'show', '1')).stdout).toMatch(/failed +resolved: gone from the platform/);
  const again = await gone(1);
  expect([again.code, again.stderr]).toEqual([
    2,
    expect.stringMatching('Job 1 is failed: only an active job can be ended as gone.'),
  ]);

  const polled = await run('jobs', 'poll');
  expect([polled.code, polled.stdout]).toEqual([0, 'No active jobs.\n']);
  expect((await run('status')).stdout).not.toMatch('--gone');
});
