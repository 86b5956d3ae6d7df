import { describe, expect, it } from 'vitest';
import { closeNow, newStore } from '../open-history.js';
import { runCli, startCli } from '../run-cli.js';
import { endedWith, env, historyFile, serveSandbox, workspaceOf } from './workspace.js';

describe('readership start', () => {
  it('reports that another process is the worker, and tries again later', async () => {
    const sandbox = await serveSandbox();
    const cwd = await workspaceOf(sandbox);
    const holder = await newStore(historyFile(cwd));
    const service = startCli(['start'], { cwd, env });
    await service.until(/"outcome":"later","error":".+ is held by `readership test`/);
    service.child.kill('SIGTERM');
    expect(await service.result).toMatchObject({ code: 0, stderr: '' });
    await closeNow(holder);
  });

  it('exits 2 without a key, and for every invalid schedule, with its line', async () => {
    const site = { baseUrl: 'http://127.0.0.1', projectId: 'prj_1' };
    const keyless = endedWith(2, await runCli(['start'], { cwd: await workspaceOf(site) }));
    expect(keyless.stderr).toContain('set READERSHIP_API_KEY');
    const schedule =
      "schedule:\n  export: nightly\n  poll: 75 * * * *\n  report: '0 0 31 2 *'\n  timezone: Mars\n";
    const { stderr } = endedWith(2, await runCli(['start'], { cwd: await workspaceOf(site, schedule) }));
    for (const fault of [
      /:4 {2}schedule\.export: not a cron/,
      /:5 {2}schedule\.poll: .+'75' is not a minute .+ such as '15 2/,
      /:6 {2}schedule\.report: .+no such day/,
      /:7 .+time zone/,
    ])
      expect(stderr).toMatch(fault);
  });
});
