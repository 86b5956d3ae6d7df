import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { Output } from '../../src/terminal/output.js';

it('JSON has camelCase keys at every depth, and values as they are', async () => {
  const out = new PassThrough();
  new Output(out, new PassThrough(), false).json([
    { started_at: new Date(0), job: { pr_link: null, remote_id: 'job_1' }, weeks: [{ ai_per_human: 0.5 }] },
  ]);
  out.end();
  expect(JSON.parse(await text(out))).toEqual([
    {
      startedAt: '1970-01-01T00:00:00.000Z',
      job: { prLink: null, remoteId: 'job_1' },
      weeks: [{ aiPerHuman: 0.5 }],
    },
  ]);
});
