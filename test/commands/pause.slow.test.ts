import { expect, it } from 'vitest';
import { runCli, startCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import {
  daysAgo,
  endedWith,
  env,
  platformOf,
  platformWorkspace,
  replaceIn,
  workspaceOf,
} from './workspace.js';
import { useSmallReports } from '../small-reports.js';

it('start goes on at once after a restart with the setting changed that made it pause', async () => {
  const platform = await platformOf(12, 40);
  const cwd = await platformWorkspace(platform, `history: { start: ${daysAgo(12)}, requestsPerHour: 6 }\n`);
  await useSmallReports(cwd);
  const paused = startCli(['start'], { cwd, env });
  await paused.until(/export later/);
  paused.child.kill('SIGTERM');
  const { stdout } = endedWith(0, await paused.result);
  expect(stdout).toMatch(/"summary":"[^"]*history\.requestsPerHour reached: 6 of 6 used.*"resumeAt":"/);
  await replaceIn(cwd, 'requestsPerHour: 6', 'requestsPerHour: unlimited');
  const service = startCli(['start'], { cwd, env });
  await service.until(/export done/);
  service.child.kill('SIGTERM');
  endedWith(0, await service.result);
  expect(new Set(platform.views.map(({ from }) => from)).size).toBeGreaterThan(11);
});

it('a pause that the platform wants is shown by status, and over once doctor gets an answer', async () => {
  let isRefusing = true;
  // A Unix time, tomorrow: at most an hour of it is believed.
  const tomorrow = String(Math.floor(Date.now() / 1000) + 86_400);
  const { baseUrl, seen } = await serve((_, response) =>
    isRefusing
      ? reply(response, 429, 'Too many requests', { 'retry-after': tomorrow })
      : reply(response, 200, { totals: { human: 0, ai: 0, total: 0 }, views: [], hasMore: false }),
  );
  const cwd = await workspaceOf({ baseUrl, projectId: 'prj_1' }, `history: { start: ${daysAgo(3)} }\n`);
  await useSmallReports(cwd);
  const views = () => seen.filter(({ url }) => url.pathname.endsWith('/views')).length;
  const call = (...args: string[]) => runCli(args, { cwd, env });
  const refused = endedWith(75, await call('export'));
  expect(refused.stderr).toMatch(/To ask it again now: readership doctor/);
  expect(views()).toBe(1);
  expect((await call('status', '--json')).stdout).toContain('"pausedUntil": "');
  endedWith(75, await call('export'));
  expect(views()).toBe(1);
  const asked = endedWith(0, await call('doctor'));
  expect(asked.stdout).toMatch(
    /^warn {2}key +prj_1: The platform refused .+ The next request can be sent on .+\.$/m,
  );
  expect(asked.stdout).not.toContain('readership doctor');
  isRefusing = false;
  endedWith(0, await call('doctor'));
  endedWith(0, await call('export'));
  expect((await call('status', '--json')).stdout).toContain('"pausedUntil": null');
});
