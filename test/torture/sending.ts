// A process that plans jobs and sends them to a platform that is a file: each line is a prompt that arrived. It prints
// the number of each job whose outcome is stored. Started by sends.ts. When it runs, it imports dist instead of src.
import { appendFileSync, writeSync } from 'node:fs';
import { planJob } from '../../src/agents/job.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { acquireWorker } from '../../src/state/lock.js';
import { createState, openState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { recover, Sender } from '../../src/state/sender.js';

const [dataDir = '', witness = '', platform = '', first = '', jobs = ''] = process.argv.slice(2);
const now = () => new Date(Date.parse('2026-11-18T05:00:00Z') + 1_000 * Number(first));
const here = await placeOf(dataDir, 'test-machine');
const state = (await openState(dataDir)) ?? (await createState(dataDir, here));
const worker = await acquireWorker(dataDir, state, { command: 'readership test', now, maxWaitMs: 20_000 });
await recover(state, worker, now());
const sender = new Sender({ state, worker, here, witness, whyNot: () => Promise.resolve(undefined) });
const accept = (prompt: string) => {
  appendFileSync(platform, `${prompt}\n`);
  return Promise.resolve({ id: `job ${prompt}`, status: 'active' });
};
const client = { createJob: accept, sendMessage: (_: string, prompt: string) => accept(prompt) };
const rules = { maxJobsPerWeek: 1_000_000, maxOpenPullRequests: 1_000_000 };
for (let number = Number(first); number < Number(first) + Number(jobs); number++) {
  const page = { project: 'prj_1', path: `/${number}`, reason: 'much read' };
  const evidence = { weekly_human: 1, weekly_ai: 1, trend: null, weeks: [] };
  const prompt = String(number);
  const reference = `torture ${number}`;
  await state.transaction(() =>
    planJob(state, { ...page, ...evidence, reference, prompt, is_approved: true, planned_at: now() }),
  );
}
const onJob = ({ prompt, state: outcome }: { prompt: string; state: string }) => {
  if (outcome === 'active') writeSync(1, `${prompt}\n`);
};
await submitPrompts({ state, sender, client, rules, sendsAll: true, project: 'prj_1', now, onJob }, 'job');
await worker.release();
state.close();
