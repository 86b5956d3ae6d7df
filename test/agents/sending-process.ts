// A process that sends one job or message, and can kill itself at one of the moments between two writes. Started by
// processes.slow.test.ts. When it runs, it imports dist instead of src.
import { submitPrompts } from '../../src/agents/submit.js';
import { Client } from '../../src/api/client.js';
import { Transport } from '../../src/api/transport.js';
import { acquireWorker } from '../../src/state/lock.js';
import { openState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { recover, Sender } from '../../src/state/sender.js';

const [dataDir = '', kind = '', point = '', baseUrl = '', witness = ''] = process.argv.slice(2);
const now = () => new Date('2026-11-18T05:00:00Z');
const state = await openState(dataDir);
if (state === undefined) throw new Error('there is no state');
const worker = await acquireWorker(dataDir, state, { command: 'readership test', now, maxWaitMs: 20_000 });
await recover(state, worker, now());
const here = await placeOf(dataDir, 'test-machine');
const sender = new Sender({ state, worker, here, witness, whyNot: () => Promise.resolve(undefined) });

const dieAt = (name: string) => {
  if (name === point) process.kill(process.pid, 'SIGKILL');
};
const begin = sender.begin.bind(sender);
sender.begin = async (...given) => {
  const attempt = await begin(...given);
  dieAt('begun');
  return attempt;
};
const transport = new Transport();
const own = new Client({ baseUrl, projectId: 'prj_1', apiKey: 'k', keyName: 'K', now, transport });
const answered = <Answer>(answer: Answer): Answer => {
  dieAt('answered');
  return answer;
};
const client = {
  createJob: (...given: Parameters<Client['createJob']>) => own.createJob(...given).then(answered),
  sendMessage: (...given: Parameters<Client['sendMessage']>) => own.sendMessage(...given).then(answered),
};
const rules = { maxJobsPerWeek: 10, maxOpenPullRequests: 10 };
const task = { state, sender, client, rules, sendsAll: true, project: 'prj_1', now };
const { sent } = await submitPrompts(task, kind === 'job' ? 'job' : 'message');
dieAt('stored');
await worker.release();
process.exit(sent === 0 ? 3 : 0);
