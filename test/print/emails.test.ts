import { expect, it } from 'vitest';
import { resendCommand, settleCommands } from '../../src/print/emails.js';

it('the command to resend a report sends it to nobody else', () => {
  const delivery = { report: 'weekly', project: 'prj_a', period: '2026-W01', recipient: 'a@example.com' };
  const command =
    'readership report send weekly --period 2026-W01 --project prj_a --force --to a@example.com';
  expect(resendCommand(delivery)).toBe(command);
  expect(resendCommand({ ...delivery, project: '-' })).not.toContain('--project');
});

it('settling an email names it whole, also that of an alert', () => {
  const period = 'export 2026-11-16T03:00:00.000Z';
  const delivery = { report: 'alert', project: '-', period, recipient: 'a@example.com' };
  expect(settleCommands(delivery)).toBe(
    "readership report resolve alert --period 'export 2026-11-16T03:00:00.000Z' --delivered a@example.com, or --not-delivered a@example.com",
  );
});
