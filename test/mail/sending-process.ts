// A process that sends one email, and can kill itself at one of the moments between two writes. Started by
// processes.slow.test.ts. When it runs, it imports dist instead of src.
import { parseMailAddress } from '../../src/config/recipients.js';
import { compose } from '../../src/mail/compose.js';
import { deliver } from '../../src/mail/deliver.js';
import { type MailTransport, smtpTransport } from '../../src/mail/transport.js';
import { acquireWorker } from '../../src/state/lock.js';
import { openState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { recover, Sender } from '../../src/state/sender.js';

const [dataDir = '', point = '', smtpUrl = '', witness = ''] = process.argv.slice(2);
const now = () => new Date('2026-11-18T05:00:00Z');
const state = await openState(dataDir);
const address = parseMailAddress('docs@example.com');
if (state === undefined || address === undefined) throw new Error('there is no state');
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
const mailServer = smtpTransport(smtpUrl);
const transport: MailTransport = {
  ...mailServer,
  send: async (...given) => {
    const outcome = await mailServer.send(...given);
    dieAt('answered');
    return outcome;
  },
};
const { signal } = new AbortController();
const parts = { state, sender, outgoing: { transport: () => transport }, session: { now, signal } };
const key = { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient: address };
const content = { subject: 'Weekly', html: '<p>Read.</p>', text: 'Read.', pictures: [] };
const letter = await compose(key, content, { from: { name: 'Readership', address } }, now());
const delivered = await deliver(parts, [letter], 'due');
dieAt('stored');
await worker.release();
process.exit(delivered.length === 0 ? 3 : 0);
