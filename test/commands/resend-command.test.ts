import { expect, it } from 'vitest';
import { resendCommand } from '../../src/commands/mail-lines.js';

it('the command to resend a report sends it to nobody else', () => {
  const delivery = { report: 'weekly', project: 'prj_a', period: '2026-W01', recipient: 'a@example.com' };
  const command =
    'readership report weekly --period 2026-W01 --project prj_a --send --force --to a@example.com';
  expect(resendCommand(delivery, undefined)).toBe(command);
  expect(resendCommand(delivery, { index: 2, count: 8 })).toBe(`${command} --shard 2/8`);
});
