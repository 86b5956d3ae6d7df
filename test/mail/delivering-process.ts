// A process that delivers the weekly report to some recipients, as a step does, and that crash.slow.test.ts kills. When it
// runs, it imports dist instead of src.
import { dirname } from 'node:path';
import { deliver, reconcileDeliveries } from '../../src/mail/ledger.js';
import { compose } from '../../src/mail/compose.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { parseMailAddress } from '../../src/config/recipients.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { openWarehouse } from '../../src/warehouse/open.js';

const [file = '', url = '', ...recipients] = process.argv.slice(2);
const now = () => new Date('2026-11-16T03:00:00Z');
const from = parseMailAddress('readership@example.com');
if (from === undefined) throw new Error('no sender');

const warehouse = await openWarehouse(file, { command: 'delivering-process', now, maxWaitMs: 5_000 });
const journal = await EffectsJournal.open(dirname(file));
await reconcileDeliveries({ warehouse, journal }, now());
const messages = await Promise.all(
  recipients.map((recipient) =>
    compose(
      { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient },
      { subject: 'Weekly', html: '<p>Read.</p>', text: 'Read.', pictures: [] },
      { from: { name: 'Readership', address: from } },
      now(),
    ),
  ),
);
const transport = smtpTransport(url, { connectMs: 2_000, silenceMs: 2_000, totalMs: 4_000 });
const { signal } = new AbortController();
await deliver({ warehouse, journal, transport, admission: 'due', now, signal }, messages);
await journal.close();
await warehouse.close();
