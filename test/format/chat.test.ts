import { expect, it } from 'vitest';
import { chatLink, chatMessageIn, chatParts, markedForChats, plainText } from '../../src/format/chat.js';

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

it('a message cut within a link has the words so far, and no address', () => {
  const half = linked.slice(0, -4);
  expect(chatParts(`Read: ${half}`)).toEqual([{ words: 'Read: …', href: null }]);
});
