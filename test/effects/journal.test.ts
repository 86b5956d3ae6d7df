import { execFile } from 'node:child_process';
import {
  appendFile,
  chmod,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StorageError } from '../../src/errors.js';
import type { JournalEntry, Fate } from '../../src/effects/entries.js';
import { countDifferences, differences, type Settlement, settle } from '../../src/effects/settle.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { smallDisk } from '../small-disk.js';
import { tempDir } from '../temp-dir.js';

const EMAIL = {
  ...({ effect: 'email', report: 'weekly', project: 'prj_1', period: '2026-W46' } as const),
  ...({ recipient: 'a@example.com', via: 'smtp', messageId: '<1@example.com>', attempts: 1 } as const),
};
const at = (text: string) => new Date(`${text}T03:00:00Z`);

async function openIn(directory: string): Promise<EffectsJournal> {
  const journal = await EffectsJournal.open(directory);
  onTestFinished(() => journal.close());
  return journal;
}

const send = async (journal: EffectsJournal, ref: string, now: Date) => {
  await (await depart(journal, ref, now)).ended({ event: 'sent' }, now);
};
const refsOf = (journal: EffectsJournal) => [...journal.known('email').keys()];
/** What is being sent, and so has no outcome yet. */
const depart = (journal: EffectsJournal, ref: string, now: Date) =>
  journal.depart({ ...EMAIL, ref }, now, () => Promise.resolve());

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
    expect((await EffectsJournal.open(directory, 'reader')).cutBytes).toBe(0);
    await departure.ended({ event: 'unknown', note: 'cut off' }, at('2026-11-22'));
    expect((await stat(journal.path)).mode & 0o777).toBe(0o600);
    const again = await openIn(directory);
    expect([again.found, again.known('job').size]).toEqual([true, 0]);
    const effect = again.known('email').get('a');
    expect(effect?.last).toMatchObject({ event: 'unknown', note: 'cut off', at: '2026-11-22T03:00:00.000Z' });
    expect([...(effect?.attempts ?? [])]).toEqual(['2026-11-21T03:00:00.000Z']);
  });

  it('that was restored by copying is private again with the first entry', async () => {
    const journal = await openIn(await tempDir());
    await send(journal, 'a', at('2026-11-21'));
    await chmod(journal.path, 0o644);
    await send(await openIn(journal.directory), 'b', at('2026-11-22'));
    expect((await stat(journal.path)).mode & 0o777).toBe(0o600);
  });

  it('asks before each departure whether anything may be sent, and records nothing if not', async () => {
    const journal = await openIn(await tempDir());
    expect(journal.lastSentAt).toBeUndefined();
    let refusal: Error | undefined = new Error('sent from elsewhere');
    journal.askFirst(() => Promise.resolve(refusal));
    await expect(send(journal, 'a', at('2026-11-21'))).rejects.toThrow('sent from elsewhere');
    refusal = undefined;
    for (const ref of ['b', 'c']) await send(journal, ref, at('2026-11-21'));
    expect(refsOf(await openIn(journal.directory))).toEqual(['b', 'c']);
  });

  it('lets it be remembered elsewhere that something is sent, before it is', async () => {
    const journal = await openIn(await tempDir());
    const done: string[] = [];
    const begin = () => Promise.resolve(done.push('sent'));
    journal.askFirst(
      () => Promise.resolve(undefined),
      () => Promise.resolve(done.push('remembered')),
    );
    await journal.depart({ ...EMAIL, ref: 'a' }, at('2026-11-21'), begin);
    expect(done).toEqual(['remembered', 'sent']);
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
    const torn = Buffer.concat([whole, Buffer.from('{"at":"2026-\0\0\0')]);
    for (const [text, cutBytes] of [
      [torn, 15],
      [whole.subarray(0, -1), 0],
      [Buffer.concat([whole.subarray(0, -1), Buffer.from('  ')]), 0],
    ] as const) {
      await writeFile(first.path, text);
      // Only the holder of the live database may repair it.
      expect((await EffectsJournal.open(directory, 'reader')).cutBytes).toBe(cutBytes);
      expect(await readFile(first.path)).toEqual(text);
      const journal = await openIn(directory);
      expect(journal.cutBytes).toBe(cutBytes);
      expect(await readFile(first.path)).toEqual(whole);
      expect(journal.known('email').get('a')?.last.event).toBe('sent');
      await send(journal, 'b', at('2026-11-22'));
      expect(refsOf(await openIn(directory))).toEqual(['a', 'b']);
    }
    const changed = whole.toString().slice(0, -1);
    await writeFile(first.path, changed.replace(/"sent"(?=[^\n]*$)/, '"sent'));
    await expect(EffectsJournal.open(directory)).rejects.toThrow(
      `Line 2 of the effects journal ${first.path} cannot be read: its checksum does not match`,
    );
  });

  it('stops at a line that is not an entry, and says which one and what to do', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await send(journal, 'a', at('2026-11-21'));
    await appendFile(journal.path, 'rubbish\n');
    const opening = EffectsJournal.open(directory);
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow(`Line 3 of the effects journal ${journal.path} cannot be read`);
    await expect(opening).rejects.toThrow(`mv "${journal.path}"`);
    for (const line of ['{"effect":"email","event":"sent"}', '{"effect":"workspace","id":""}']) {
      await writeFile(journal.path, `${line}\n`);
      await expect(EffectsJournal.open(directory)).rejects.toThrow('Line 1 of');
    }
  });

  it('never reads other content after any single bit has flipped', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await send(journal, 'a', at('2026-11-21'));
    await send(journal, 'b', at('2026-11-22'));
    const whole = await readFile(journal.path);
    const known = async () => [...(await openIn(directory)).known('email').values()];
    const before = await known();
    // Every 37th bit, which are all bits of some bytes, and every bit of the last line feed.
    const bits = Array.from({ length: 8 * whole.length }, (_, bit) => bit);
    for (const bit of bits.filter((bit) => bit % 37 === 0 || bit >= 8 * (whole.length - 1))) {
      const flipped = Buffer.from(whole);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      await writeFile(journal.path, flipped);
      const after = await known().catch((error: unknown) => error);
      if (after instanceof Error) expect(after.message).toMatch(/^Line [1-4] of the effects journal/);
      else expect(after, `bit ${bit}`).toEqual(before);
    }
  });

  it('notices lines that are missing, repeated or out of order, also across files, and names the line', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await send(journal, 'a', at('2025-12-31'));
    await send(journal, 'b', at('2026-01-01'));
    const lines = (await readFile(journal.path, 'utf8')).split(/(?<=\n)/);
    const [first = '', second = ''] = lines;
    const cases: readonly [text: string, problem: string][] = [
      [second, 'Line 1 of the effects journal .* entry 4, and entry 3 is missing before it'],
      [first + first + second, 'Line 2 of .* entry 3 again, or out of order: the entry before it is 3'],
      [second + first, 'Line 1 of .* entry 3 is missing'],
      [`${first}{"effect":"workspace","id":"a"}\n`, 'Line 2 of .* it has no checksum'],
    ];
    for (const [text, problem] of cases) {
      await writeFile(journal.path, text);
      await expect(EffectsJournal.open(directory)).rejects.toThrow(new RegExp(problem));
    }
    await writeFile(journal.path, first + second);
    await rm(join(directory, 'effects-2025.log'));
    await expect(EffectsJournal.open(directory)).rejects.toThrow('entry 1 is missing before it');
  });

  it('reserves room for every outcome before anything departs, and leaves none behind', async () => {
    const journal = await openIn(await tempDir());
    const departures = await Promise.all(['a', 'b'].map((ref) => depart(journal, ref, at('2026-11-21'))));
    const { size } = await stat(journal.path);
    for (const departure of departures)
      await departure.ended({ event: 'unknown', note: '”'.repeat(9_999) }, at('2026-11-21'));
    const after = await stat(journal.path);
    expect(after.size).toBeLessThanOrEqual(size);
    expect((await readFile(journal.path, 'utf8')).endsWith('"}\n')).toBe(true);
    expect((await openIn(journal.directory)).known('email').get('b')?.last.note).toHaveLength(500);
  });

  it('knows on a full disk that nothing was sent', async (context) => {
    const directory = await tempDir();
    const disk = await smallDisk(context, directory);
    const journal = await openIn(directory);
    await send(journal, 'before', at('2026-11-21'));
    const failing = journal.depart({ ...EMAIL, ref: 'a' }, at('2026-11-21'), async () => {
      await disk.leaveRoom(0);
      throw new Error('disk full');
    });
    await expect(failing).rejects.toThrow('disk full');
    const begun = await openIn(directory);
    expect(begun.known('email').get('a')?.last.event).toBe('not-sent');
    await disk.makeRoom();
    const underWay = await depart(begun, 'c', at('2026-11-21'));
    const written = await readFile(begun.path);
    await disk.leaveRoom(0);
    // Long enough to need another page of the disk.
    const long = { ...EMAIL, ref: 'b', report: 'r'.repeat(9_999) };
    const departLong = () => begun.depart(long, at('2026-11-21'), () => Promise.reject(new Error('begun')));
    await expect(departLong()).rejects.toThrow('The disk is full');
    // Neither a partial line nor the loss of what is reserved for the other outcome.
    expect(await readFile(begun.path)).toEqual(written);
    await underWay.ended({ event: 'sent' }, at('2026-11-21'));
    expect(refsOf(await openIn(directory))).toEqual(['before', 'a', 'c']);
    // With room again, this process still sends nothing, because it does not know what is in the file.
    await disk.makeRoom();
    await expect(departLong()).rejects.toThrow('The disk is full');
    await expect(begun.append([])).resolves.toBeUndefined();
    const [entry = expect.fail()] = [...begun.known('email').values()].map(({ last }) => last);
    await expect(begun.append([entry])).rejects.toThrow('The disk is full');
  });

  it.each([
    ['not a file', (path: string) => mkdir(path)],
    ['a link that leads to no file', (path: string) => symlink('nowhere', path)],
    ['a link that leads to no file', (path: string) => symlink('effects.log', path)],
    ['not a file', (path: string) => promisify(execFile)('mkfifo', [path])],
  ])('that is %s is named as such, at once', async (what, make) => {
    const directory = await tempDir();
    await make(join(directory, 'effects.log'));
    await expect(EffectsJournal.open(directory)).rejects.toThrow(`effects.log is ${what}. Nothing was sent.`);
  });

  it('begins a new file each year, reads all of them, and overwrites none', async () => {
    const directory = await tempDir();
    const killed = await openIn(directory);
    await send(killed, 'a', at('2025-12-31'));
    // As a process leaves it that is killed between two files.
    await rename(killed.path, join(directory, 'effects-2025.log'));
    await writeFile(join(directory, 'effects-2024.log.bak'), 'not read\n');
    const journal = await openIn(directory);
    await send(journal, 'b', at('2026-01-01'));
    await send(journal, 'c', at('2027-06-01'));
    // The clock is set back, and is then right again.
    await send(journal, 'd', at('2026-06-01'));
    expect(journal.lastSentAt).toEqual(at('2027-06-01'));
    await send(journal, 'e', at('2027-06-02'));
    // What is being sent when the year ends has room for its outcome in the old file.
    const departure = await depart(journal, 'f', at('2027-12-31'));
    await send(journal, 'g', at('2028-01-01'));
    await departure.ended({ event: 'sent' }, at('2028-01-01'));
    const files = ['effects-2024.log.bak', 'effects-2025.log', 'effects-2026.log', 'effects.log'];
    expect((await readdir(directory)).sort()).toEqual(files);
    expect(refsOf(await openIn(directory))).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  });

  it('keeps entries whole that are written at the same time', async () => {
    const directory = await tempDir();
    const journal = await openIn(directory);
    await Promise.all(Array.from({ length: 20 }, (_, one) => send(journal, String(one), at('2026-11-21'))));
    await journal.append([...journal.known('email').values()].map(({ last }) => last));
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
  const journalOf = (event: JournalEntry['event'], attempt = FIRST, attempts = [attempt]) => ({
    last: { ...EMAIL, ref: 'a', at: attempt, attempt, event },
    attempts: new Set(attempts),
  });
  const stored = (fate: Fate, attempt = FIRST) => ({ fate, attempt });

  const UNKNOWN = { store: 'unknown', write: 'unknown' } as const;
  const IN_DATABASE = { knows: 'database' } as const;
  it.each<[string, Fate | undefined, Fate | undefined, Partial<Settlement>]>([
    ['the database lost an intent', 'sending', undefined, UNKNOWN],
    ['the database lost what was sent', 'sent', undefined, { store: 'sent', isLost: true }],
    ['the database lost a refusal', 'refused', undefined, { store: 'refused', isLost: true }],
    ['nothing had left', 'not-sent', undefined, {}],
    ['an older copy has it unsent', 'sent', 'not-sent', { store: 'sent', isLost: true }],
    ['an older copy, intent only', 'sending', 'not-sent', UNKNOWN],
    ['killed before the reply', 'sending', 'sending', UNKNOWN],
    ['killed between the outcomes: sent', 'sent', 'sending', { store: 'sent' }],
    ['killed between the outcomes: not sent', 'not-sent', 'sending', { store: 'not-sent' }],
    ['killed between the outcomes: refused', 'refused', 'sending', { store: 'refused' }],
    ['settled by a person, then lost', 'not-sent', 'unknown', { store: 'not-sent' }],
    ['a person said that it was not refused', 'not-sent', 'refused', { store: 'not-sent' }],
    ['sent, whatever a refusal says', 'sent', 'refused', { store: 'sent' }],
    ['no journal: sent', undefined, 'sent', { ...IN_DATABASE, write: 'sent' }],
    ['no journal: being sent', undefined, 'sending', { ...IN_DATABASE, ...UNKNOWN }],
    ['no journal: unsent', undefined, 'not-sent', {}],
    ['the journal lacks the outcome', 'sending', 'sent', { ...IN_DATABASE, write: 'sent' }],
    ['the journal lacks the refusal', 'unknown', 'refused', { ...IN_DATABASE, write: 'refused' }],
    ['killed before the refusal was journaled', 'sending', 'refused', { ...IN_DATABASE, write: 'refused' }],
    ['sent after all', 'refused', 'sent', { ...IN_DATABASE, write: 'sent' }],
    ['sent in both', 'sent', 'sent', IN_DATABASE],
    ['unknown in both', 'unknown', 'unknown', {}],
  ])('of one attempt: %s', (_, event, fate, expected) => {
    const settled = settle(event && journalOf(event), fate && stored(fate));
    expect(settled).toEqual({ knows: 'journal', ...expected });
  });

  const later = (event: JournalEntry['event']) => journalOf(event, SECOND, [FIRST, SECOND]);
  const since = (fate: Fate) => stored(fate, SECOND);
  it.each<[string, ...Parameters<typeof settle>, Partial<Settlement>]>([
    ['sent again by a person, then lost', later('sending'), stored('sent'), UNKNOWN],
    ['the second was sent', later('sent'), stored('unknown'), { store: 'sent', isLost: true }],
    ['sent since', journalOf('not-sent'), since('sent'), { ...IN_DATABASE, write: 'sent' }],
    ['being sent since', journalOf('not-sent'), since('sending'), { ...IN_DATABASE, ...UNKNOWN }],
    ['unknown since', journalOf('not-sent'), since('unknown'), { ...IN_DATABASE, write: 'unknown' }],
  ])('of two attempts: %s', (_, journal, row, expected) => {
    expect(settle(journal, row)).toEqual({ knows: 'journal', ...expected });
  });

  it('is counted by what each of them lacked', () => {
    const known = new Map([
      ['lost intent', journalOf('sending')],
      ['lost', journalOf('sent')],
      ['in both', journalOf('sent')],
      ['without its outcome', journalOf('sending')],
    ]);
    const rows = ['in both', 'without its outcome', 'only here', 'and this'].map((reference) => ({
      reference,
      ...stored('sent'),
    }));
    const found = differences(known, rows);
    expect(found.map(({ row, last, attempts }) => [row?.reference, last?.event, attempts.size])).toEqual([
      [undefined, 'sending', 1],
      [undefined, 'sent', 1],
      ['without its outcome', undefined, 0],
      ['only here', undefined, 0],
      ['and this', undefined, 0],
    ]);
    expect(countDifferences(found)).toEqual({ stored: 2, lost: 1, unknown: 1, written: 3 });
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
