import { existsSync } from 'node:fs';
import { appendFile, cp, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startCli } from '../run-cli.js';
import { openSite, type Site } from './site.js';
import { endedWith } from './workspace.js';

describe('a workspace that has sent jobs and emails, and whose data directory is empty', () => {
  let site: Site;
  let data: string;
  let marker: string;
  let sent: readonly number[];
  const counts = () => [site.sandbox.inspect().jobs.length, site.emails()];
  beforeAll(async () => {
    site = await openSite();
    data = join(site.cwd, 'data');
    marker = join(site.cwd, '.readership.yaml.sent');
    expect(existsSync(marker)).toBe(false);
    endedWith(0, await site.run('run'));
    sent = counts();
    expect(Math.min(...sent)).toBeGreaterThan(0);
    expect(existsSync(marker)).toBe(true);
  });
  beforeEach(async () => {
    await rm(`${data}.away`, { recursive: true, force: true });
    await rename(data, `${data}.away`);
  });

  it.each(['missing', 'an empty mount point'])('sends nothing again, also if it is %s', async (state) => {
    if (state !== 'missing') await mkdir(data);
    for (const command of [['run'], ['export'], ['improve', '--apply'], ['jobs', 'poll']]) {
      const { code, stderr } = await site.run(...command);
      expect({ command, code }).toEqual({ command, code: 1 });
      expect(stderr).toMatch(
        /has no state, although this workspace has sent jobs or emails.+restore --from/s,
      );
    }
    expect(existsSync(join(data, 'warehouse.duckdb'))).toBe(false);
    endedWith(0, await site.run('restore', '--from', `${data}.away/history.duckdb`));
    endedWith(0, await site.run('run'));
    expect(counts()).toEqual(sent);
  });

  it('is served by no running service: it stops when its directory is another one', async () => {
    await rename(`${data}.away`, data);
    const schedule = '\nschedule: { export: "* * * * *", poll: "* * * * *" }\n';
    await appendFile(join(site.cwd, 'readership.yaml'), schedule);
    const service = startCli(['start'], { cwd: site.cwd, env: site.env });
    await service.until(/export: done|"step":"export","outcome":"done"|publish/);
    await rename(data, `${data}.away`);
    await cp(`${data}.away`, data, { recursive: true });
    const { code, stderr, stdout } = await service.result;
    expect(code).toBe(1);
    expect(stderr + stdout).toMatch(/The data directory .+ is another one now/);
    expect(counts()).toEqual(sent);
  });

  it('starts over once its marker is deleted', async () => {
    await rm(marker);
    endedWith(0, await site.run('run'));
    expect(counts()).not.toEqual(sent);
  });
});
