import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { loadScreen, wrapped as wrappedOn } from '../../src/terminal/output.js';

const screen = await loadScreen();
const wrapped = (text: string, width: number): string => wrappedOn(text, width, screen);

describe('lines for people on a narrow terminal', () => {
  it('are broken between words, and continue under the start of their text', () => {
    expect(wrapped('  why   number 1 in sustained reading', 24)).toBe(
      '  why   number 1 in\n        sustained\n        reading',
    );
    expect(wrapped('  Find the source file of that page.', 24)).toBe(
      '  Find the source file\n  of that page.',
    );
  });

  it('are unchanged if they fit, or if they are one long address', () => {
    const address = `  pull request  https://code.example.com/${'a'.repeat(60)}`;
    expect(wrapped(`short\n\n${address}`, 60)).toBe(`short\n\n${address}`);
  });

  it('keep every word and color', () => {
    const painted = '  state  \u001B[32mcompleted without any change at all\u001B[39m';
    const plain = stripVTControlCharacters(wrapped(painted, 30)).split(/\s+/).join(' ').trim();
    expect(plain).toBe('state completed without any change at all');
  });

  it('are not broken if the column before them takes more than half of the terminal', () => {
    const line = `${'name '.repeat(8)}  some words that would have hardly any room`;
    expect(wrapped(line, 60)).toBe(line);
  });
});
