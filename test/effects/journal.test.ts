import { readdir, readFile, stat, writeFile, appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StorageError } from '../../src/errors.js';
import type { Entry, Fate } from '../../src/effects/entries.js';
import { type Settlement, settle } from '../../src/effects/settle.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { tempDir } from '../temp-dir.js';

const EMAIL = {
  ...{
    effect: 'email' as const,
    report: 'weekly',
    project: 'prj_1',
    period: '2026-W46',
    recipient: 'a@example.com',
  },
  ...{ via: 'smtp' as const, messageId: '<1@example.com>', attempts: 1 },
};
const at = (text: string) => new Date(`${text}T03:00:00Z`);

async function openIn(directory: string): Promise<EffectsJournal> {
  const journal = await EffectsJournal.open(directory);
  onTestFinished(() => journal.close());
  return journal;
}

const send = async (journal: EffectsJournal, ref: string, now: Date) => {
  const departure = await journal.depart({ ...EMAIL, ref }, now, () => Promise.resolve());
  await departure.ended({ event: 'sent' }, now);
};
const refsOf = (journal: EffectsJournal) => [...journal.known('email').keys()];

describe('the effects journal', () => {
  it('has an effect on disk before anything else happens, and its outcome afterwards; only its owner can read it', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    expect(journal.found).toBe(false);
    let atBegin = '';
    const departure = await journal.depart({ ...EMAIL, ref: 'a' }, at('2026-11-21'), async () => {
      atBegin = await readFile(journal.path, 'utf8');
    });
    expect(JSON.parse(atBegin)).toMatchObject({ event: 'sending', ref: 'a', recipient: 'a@example.com' });
    await departure.ended({ event: 'unknown', note: 'cut off' }, at('2026-11-22'));
    expect((await stat(journal.path)).mode & 0o777).toBe(0o600);
    const again = await openIn(directory);
    const effect = again.known('email').get('a');
    expect(effect?.last).toMatchObject({ event: 'unknown', note: 'cut off', at: '2026-11-22T03:00:00.000Z' });
    expect([...(effect?.attempts ?? [])]).toEqual(['2026-11-21T03:00:00.000Z']);
  });

  it('records that nothing was sent if the database could not record it', async () => {
    const journal = await openIn(await tempDir());
    const failing = journal.depart({ ...EMAIL, ref: 'a' }, at('2026-11-21'), () =>
      Promise.reject(new Error('disk full')),
    );
    await expect(failing).rejects.toThrow('disk full');
    expect(journal.known('email').get('a')?.last.event).toBe('not-sent');
  });

  it('drops a torn last line, and appends after a complete one', async () => {
    const directory = await tempDir();
    const first = await openIn(directory);
    await send(first, 'a', at('2026-11-21'));
    const whole = await readFile(first.path);
    for (let length = 1; length < whole.length; length += 37) {
      await writeFile(first.path, whole.subarray(0, length));
      const journal = await openIn(directory);
      await send(journal, 'b', at('2026-11-22'));
      expect(refsOf(await openIn(directory))).toContain('b');
    }
    await writeFile(first.path, Buffer.concat([whole, Buffer.from('{"at":"2026-\0\0\0')]));
    const journal = await openIn(directory);
    expect(journal.cutBytes).toBe(15);
    expect(await readFile(first.path)).toEqual(whole);
    await writeFile(first.path, whole.subarray(0, -1));
    expect(refsOf(await openIn(directory))).toEqual(['a']);
    expect(await readFile(first.path)).toEqual(whole);
  });

  it('refuses a line in its middle that is not an entry, and says which one and what to do', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await send(journal, 'a', at('2026-11-21'));
    await appendFile(journal.path, 'rubbish\n');
    await send(journal, 'b', at('2026-11-21'));
    const opening = EffectsJournal.open(directory);
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow(`Line 3 of the effects journal ${journal.path} cannot be read`);
    await expect(opening).rejects.toThrow(`mv "${journal.path}"`);
    await writeFile(journal.path, '{"effect":"email","event":"sent"}\n');
    await expect(EffectsJournal.open(directory)).rejects.toThrow('Line 1 of');
  });

  it('begins a new file each year, reads all of them, and overwrites none', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await send(journal, 'a', at('2025-12-31'));
    await send(journal, 'b', at('2026-01-01'));
    await send(journal, 'c', at('2027-06-01'));
    // The clock is set back, and is then right again.
    await send(journal, 'd', at('2026-06-01'));
    await send(journal, 'e', at('2027-06-02'));
    expect((await readdir(directory)).sort()).toEqual([
      'effects-2025.log',
      'effects-2026.log',
      'effects.log',
    ]);
    expect(refsOf(await openIn(directory))).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('keeps entries whole that are written at the same time', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await Promise.all(Array.from({ length: 20 }, (_, one) => send(journal, String(one), at('2026-11-21'))));
    expect(refsOf(await openIn(directory))).toHaveLength(20);
  });

  it('writes nothing more after a failure, so that nothing more is sent', async () => {
    const directory = await tempDir();
    await writeFile(join(directory, 'a-file'), '');
    const journal = await openIn(directory);
    Object.defineProperty(journal, 'directory', { value: join(directory, 'a-file') });
    const begin = () => Promise.reject(new Error('begun'));
    for (let times = 0; times < 2; times++)
      await expect(journal.depart({ ...EMAIL, ref: 'a' }, at('2026-11-21'), begin)).rejects.toThrow(
        'Cannot write the effects journal',
      );
  });
});

describe('settling an effect between journal and database', () => {
  const [FIRST, SECOND] = ['2026-11-20T03:00:00.000Z', '2026-11-21T03:00:00.000Z'];
  const journalOf = (event: Entry['event'], attempt = FIRST, attempts = [attempt]) => ({
    last: { ...EMAIL, ref: 'a', at: attempt, attempt, event },
    attempts: new Set(attempts),
  });
  const stored = (fate: Fate, attempt = FIRST) => ({ fate, attempt });
  const later = (event: Entry['event']) => journalOf(event, SECOND, [FIRST, SECOND]);

  it.each<[string, Parameters<typeof settle>, Omit<Settlement, 'knows'>]>([
    [
      'the database lost an intent',
      [journalOf('sending'), undefined],
      { store: 'unknown', write: 'unknown' },
    ],
    ['the database lost what was sent', [journalOf('sent'), undefined], { store: 'sent' }],
    ['nothing had left', [journalOf('not-sent'), undefined], {}],
    ['an older copy has it unsent', [journalOf('sent'), stored('not-sent')], { store: 'sent' }],
    [
      'an older copy, intent only',
      [journalOf('sending'), stored('not-sent')],
      { store: 'unknown', write: 'unknown' },
    ],
    [
      'killed before the reply',
      [journalOf('sending'), stored('sending')],
      { store: 'unknown', write: 'unknown' },
    ],
    ['killed between the outcomes: sent', [journalOf('sent'), stored('sending')], { store: 'sent' }],
    [
      'killed between the outcomes: not sent',
      [journalOf('not-sent'), stored('sending')],
      { store: 'not-sent' },
    ],
    ['killed between the outcomes: refused', [journalOf('refused'), stored('sending')], { store: 'refused' }],
    ['settled by a person, then lost', [journalOf('not-sent'), stored('unknown')], { store: 'not-sent' }],
    [
      'sent again by a person, then lost',
      [later('sending'), stored('sent')],
      { store: 'unknown', write: 'unknown' },
    ],
    ['a later attempt was sent', [later('sent'), stored('unknown')], { store: 'sent' }],
    ['no journal: sent', [undefined, stored('sent')], { write: 'sent' }],
    ['no journal: being sent', [undefined, stored('sending')], { store: 'unknown', write: 'unknown' }],
    ['no journal: unsent', [undefined, stored('not-sent')], {}],
    ['an older journal, sent since', [journalOf('not-sent'), stored('sent', SECOND)], { write: 'sent' }],
    [
      'an older journal, being sent since',
      [journalOf('not-sent'), stored('sending', SECOND)],
      { store: 'unknown', write: 'unknown' },
    ],
    [
      'an older journal, unknown since',
      [journalOf('not-sent'), stored('unknown', SECOND)],
      { write: 'unknown' },
    ],
    ['the journal lacks the outcome', [journalOf('sending'), stored('sent')], { write: 'sent' }],
    ['the journal lacks the refusal', [journalOf('unknown'), stored('refused')], { write: 'refused' }],
    ['sent in both', [journalOf('sent'), stored('sent')], {}],
    ['unknown in both', [journalOf('unknown'), stored('unknown')], {}],
  ])('%s', (_, of, expected) => {
    const { store, write } = settle(...of);
    expect({ store, write }).toEqual({ store: expected.store, write: expected.write });
  });

  it('never sends again what may have been sent, unless the journal says that it was not', () => {
    const events = ['sending', 'sent', 'refused', 'unknown'] as const;
    for (const event of events)
      for (const fate of ['not-sent', 'sending', 'sent', 'refused', 'unknown'] as const)
        for (const attempt of [FIRST, SECOND])
          expect(settle(journalOf(event), stored(fate, attempt)).store, `${event} ${fate}`).not.toBe(
            'not-sent',
          );
  });
});
