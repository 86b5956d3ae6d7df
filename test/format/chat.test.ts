import { describe, expect, it } from 'vitest';
import {
  chatLink,
  chatMessageIn,
  chatParts,
  fittingMessage,
  ITEM,
  markedForChats,
  plainText,
} from '../../src/format/chat.js';

const linked = chatLink('https://readers.example.com/page?path=%2Fa', '/a');
const text = `Acme Docs\n\n${markedForChats(`\nHuman views: 18\n\n\nMOST READ\n${linked}: 18 human\n`)}\nAGENT WORK\n`;

it('a chat gets the marked part of a text, with its links and no wide gaps', () => {
  const message = chatMessageIn(text);
  expect(message).toBe(`Human views: 18\n\nMOST READ\n${linked}: 18 human`);
  expect(chatParts(message)).toEqual([
    { words: 'Human views: 18\n\nMOST READ\n', href: null },
    { words: '/a', href: 'https://readers.example.com/page?path=%2Fa' },
    { words: ': 18 human', href: null },
  ]);
});

it('a chat gets all of a text without marks', () => {
  expect(chatMessageIn('Busy pages\n\n/a: 18\n')).toBe('Busy pages\n\n/a: 18');
});

it('plain text has neither marks nor links', () => {
  expect(plainText(text)).toBe('Acme Docs\n\n\nHuman views: 18\n\n\nMOST READ\n/a: 18 human\n\nAGENT WORK\n');
});

describe('a message that is too long', () => {
  const length = (text: string) => text.length;
  const all = (message: string) =>
    chatParts(message)
      .map(({ words }) => words)
      .join('');

  it('has its first items, whole, and says how many more there are, and where', () => {
    const items = Array.from(
      { length: 40 },
      (_, index) => `${ITEM}Project ${index} has news\nMore about it\n\n`,
    );
    const message = `Weekly\n\n${items.join('')}`;
    for (const longest of [100, 101, 120, 500, 1_000]) {
      const shown = all(fittingMessage(message, longest, length, chatLink('https://a.example', 'Open')));
      expect(shown.length).toBeLessThanOrEqual(longest);
      const [, more] = /\n\n(\d+) more: Open$/.exec(shown) ?? [];
      const names = shown.match(/Project \d+ has news\nMore about it\n/g) ?? [];
      expect(names.length + Number(more)).toBe(40);
    }
    expect(all(fittingMessage(message, 10_000, length, null))).toBe(plainText(message));
  });

  it('has whole lines if no items are marked, and is cut after a word only within a very long line', () => {
    const lines = Array.from({ length: 40 }, (_, index) => `Line ${index} is here\n`).join('');
    expect(fittingMessage(lines, 100, length, null)).toMatch(/^(Line \d is here\n){6}\nMore$/);
    expect(fittingMessage('several words '.repeat(40), 60, length, null)).toMatch(
      / (words|several)…\n\nMore$/,
    );
  });
});
