import { describe, expect, it } from 'vitest';
import { parseMailAddress, parseSender } from '../../src/config/recipients.js';

describe('an email address', () => {
  it.each([
    [' Docs@Example.COM ', 'Docs@example.com'],
    ['first.last+weekly@docs.example.co.uk', 'first.last+weekly@docs.example.co.uk'],
    ['docs@MÜLLER.example', 'docs@müller.example'],
    ['root@localhost', 'root@localhost'],
  ])('%s is %s', (text, parsed) => {
    expect(parseMailAddress(text)).toBe(parsed);
  });

  it.each([
    ['', 'nothing'],
    ['docs', 'no domain'],
    ['@example.com', 'no mailbox'],
    ['docs@', 'no domain'],
    ['docs@example..com', 'an empty label'],
    ['a@example.com, b@example.com', 'two'],
    ['Docs <docs@example.com>', 'a name'],
    ['docs@example.com\r\nBcc: eve@example.com', 'a second line'],
    [`${'d'.repeat(250)}@example.com`, 'too long'],
  ])('%j is not one: %s', (text) => {
    expect(parseMailAddress(text)).toBeUndefined();
  });

  it('is written with a name in the sender of emails', () => {
    expect(parseSender('Readership <docs@Example.com>')).toEqual({
      name: 'Readership',
      address: 'docs@example.com',
    });
    expect(parseSender('docs@example.com')).toEqual({ name: '', address: 'docs@example.com' });
    for (const text of ['', 'Readership', 'a@example.com, b@example.com', 'Readership <docs>', 'g: a@b.c;'])
      expect(parseSender(text), text).toBeUndefined();
  });
});
