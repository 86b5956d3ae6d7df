import { EventEmitter, once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addHours, startOfMinute } from 'date-fns';
import { expect, it, vi } from 'vitest';
import { readWorkspace } from '../../src/app/workspace.js';
import { logging, openLog } from '../../src/print/log.js';
import { unsettledLines } from '../../src/print/status.js';
import { Service } from '../../src/service/loop.js';
import { type Delivery, storeDelivery } from '../../src/state/emails.js';
import { delivery } from '../mail/letters.js';
import { openTestState } from '../open-state.js';
import { runtimeIn } from '../run-cli.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';

const MINUTE_MS = 60_000;

it.each([
  ['is set back by a month', 20, -30 * 24 * 60],
  ['is set back by two minutes', 20, -2],
  ['is set forward by a year', 20, 365 * 24 * 60],
  // Before anything that looks at the clock each second can notice.
  ['is set forward just before a minute', 59.5, 365 * 24 * 60],
])('a service whose clock %s goes on', async (_, second, minutes) => {
  const cwd = await tempDir();
  const settings =
    "baseUrl: http://127.0.0.1:1\nprojects: [{ id: prj }]\nschedule: { report: '* * * * *' }\n";
  await writeFile(join(cwd, 'readership.yaml'), settings);
  // Where the data directory should be, so each tick fails at once.
  await writeFile(join(cwd, 'data'), '');
  const stop = new AbortController();
  const { runtime } = runtimeIn(cwd, { signal: stop.signal });
  const workspace = await readWorkspace({}, runtime);
  vi.useFakeTimers({
    now: startOfMinute(new Date()).getTime() + second * 1_000,
    toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
  });
  // node-cron asks this for each time that it missed.
  const missed = vi.spyOn(EventEmitter.prototype, 'listenerCount');
  try {
    const ticks = new EventEmitter();
    let ticked = once(ticks, 'tick');
    const service = new Service(workspace, runtime, {
      ...logging(await openLog(runtime.output)),
      onTickFailed: () => ticks.emit('tick'),
      onUnsettled: () => expect.fail('nothing was sent'),
    });
    const log = () => undefined;
    const running = service.run({ info: log, warn: log, error: log, debug: log });
    for (const change of [0, minutes, 0]) {
      await ticked;
      ticked = once(ticks, 'tick');
      vi.setSystemTime(Date.now() + change * MINUTE_MS);
      for (let minute = 0; minute < 4; minute++) await vi.advanceTimersByTimeAsync(MINUTE_MS);
    }
    await ticked;
    stop.abort();
    await running;
    expect(missed.mock.calls.length).toBeLessThan(10);
  } finally {
    missed.mockRestore();
    vi.useRealTimers();
  }
});

it('names what may or may not have been sent after each report step, until it is settled', async () => {
  const cwd = await tempDir();
  // A refused key ends the export at once.
  const { baseUrl } = await serve((_, response) => response.writeHead(401).end());
  await writeFile(join(cwd, 'readership.yaml'), `baseUrl: ${baseUrl}\nprojects: [{ id: prj_1 }]\n`);
  const clock = { now: new Date('2026-11-16T05:00:00Z') };
  const { runtime } = runtimeIn(cwd, {
    now: () => clock.now,
    environment: { READERSHIP_API_KEY: 'key_0123456789' },
  });
  const workspace = await readWorkspace({}, runtime);
  const said: string[] = [];
  const service = new Service(workspace, runtime, {
    onTickFailed: (error) => expect.fail(String(error)),
    onUnsettled: (unknown) => said.push(...unsettledLines(unknown)),
  });
  const tick = async () => {
    said.length = 0;
    clock.now = addHours(clock.now, 1);
    await service.tick();
    return said;
  };
  expect(await tick()).toEqual([]);
  const key = { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient: 'docs@example.com' };
  const store = async (state: Delivery['state']) => {
    const { state: stored, close } = await openTestState(workspace.dataDir);
    await stored.transaction(() => storeDelivery(stored, delivery(key, state, clock.now)));
    await close();
  };
  await store('unknown');
  for (let hours = 0; hours < 2; hours++)
    expect(await tick()).toEqual([
      expect.stringMatching(/^weekly 2026-W46 may or may not have reached docs@example.com/),
    ]);
  await store('sent');
  expect(await tick()).toEqual([]);
});
