// A process that sends one job, message or email, and kills itself at one of the moments between two writes. Started by
// loss.slow.test.ts. When it runs, it imports dist instead of src.
import { dirname } from 'node:path';
import { submitPrompts } from '../../src/agents/submit.js';
import { Client } from '../../src/api/client.js';
import { Transport } from '../../src/api/transport.js';
import { deliver } from '../../src/mail/ledger.js';
import { compose } from '../../src/mail/compose.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { parseMailAddress } from '../../src/config/recipients.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { openWarehouse } from '../../src/warehouse/open.js';

const [file = '', kind = '', point = '', baseUrl = '', smtpUrl = ''] = process.argv.slice(2);
const now = () => new Date('2026-11-18T05:00:00Z');
const warehouse = await openWarehouse(file, { command: 'sending-process', now, maxWaitMs: 5_000 });
const journal = await EffectsJournal.open(dirname(file));

const dieAt = (name: string) => {
  if (name === point) process.kill(process.pid, 'SIGKILL');
};
const depart = journal.depart.bind(journal);
journal.depart = async (intent, at, begin) => {
  const departure = await depart(intent, at, async () => {
    dieAt('journaled');
    await begin();
    dieAt('begun');
  });
  const ended = departure.ended.bind(departure);
  departure.ended = async (outcome, later) => {
    dieAt('answered');
    await ended(outcome, later);
    dieAt('outcome journaled');
  };
  return departure;
};

const transport = new Transport();
const client = new Client({ baseUrl, projectId: 'prj_1', apiKey: 'k', keyName: 'K', now, transport });
const task = { warehouse, journal, client, project: 'prj_1', now };
if (kind === 'job' || kind === 'message') await submitPrompts(task, kind);
const address = parseMailAddress('docs@example.com');
if (kind === 'email' && address !== undefined) {
  const key = { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient: address };
  const content = { subject: 'Weekly', html: '<p>Read.</p>', text: 'Read.', pictures: [] };
  const letter = await compose(key, content, { from: { name: 'Readership', address } }, now());
  const { signal } = new AbortController();
  await deliver({ warehouse, journal, transport: smtpTransport(smtpUrl), admission: 'due', now, signal }, [
    letter,
  ]);
}
dieAt('ended');
process.exit(1);
