import { describe, expect, it } from 'vitest';
import { asInvoked, type Invocation, pageAsInvoked } from '../../src/format/advice.js';

describe('the commands in a message repeat how this one was invoked', () => {
  it.each<[said: string, invocation: Invocation, words: string]>([
    ['undo: readership improve --unskip /x', {}, 'undo: readership improve --unskip /x'],
    [
      'undo: readership improve --unskip /x',
      { sandbox: true },
      'undo: readership improve --sandbox --unskip /x',
    ],
    [
      'undo: readership improve --unskip /x',
      { config: 'a b/it.yaml', project: 'prj_2' },
      "undo: readership improve --config 'a b/it.yaml' --project prj_2 --unskip /x",
    ],
    [
      'See: readership status',
      { config: '../x.yaml', project: 'p' },
      'See: readership status --config ../x.yaml',
    ],
    [
      'readership jobs show 3; readership jobs list',
      { sandbox: true },
      'readership jobs show 3 --sandbox; readership jobs list --sandbox',
    ],
    [
      '`readership sql` and `readership report` read it',
      { sandbox: true },
      '`readership sql --sandbox` and `readership report --sandbox` read it',
    ],
    [
      'readership report send weekly --force',
      { sandbox: true },
      'readership report send weekly --sandbox --force',
    ],
    [
      'Load it: readership export, or readership run --sandbox',
      { config: 'x.yaml' },
      'Load it: readership export --config x.yaml, or readership run --sandbox',
    ],
    [
      'readership export --project b',
      { project: 'a', sandbox: true },
      'readership export --sandbox --project b',
    ],
  ])('%s %j', (said, invocation, words) => {
    expect(asInvoked(said, invocation)).toBe(words);
  });

  it('in a page as HTML, but not in what is being typed there', () => {
    const page =
      '<code>readership report weekly</code><textarea>readership export</textarea>readership jobs list';
    expect(pageAsInvoked(page, { config: 'a&b.yaml' })).toBe(
      "<code>readership report weekly --config 'a&amp;b.yaml'</code><textarea>readership export</textarea>" +
        "readership jobs list --config 'a&amp;b.yaml'",
    );
    expect(pageAsInvoked(page, {})).toBe(page);
  });

  it.each([
    'is held by `readership start` (process 7, since noon)',
    'is held by `readership jobs settle` (process 7, since noon)',
    'readership init writes one; readership doctor --url checks a platform',
    'the readership of readership-docs; readership runs on, in readership/status',
    'run readership report new without --sandbox',
  ])('but not in: %s', (said) => {
    expect(asInvoked(said, { sandbox: true })).toBe(said);
  });
});
