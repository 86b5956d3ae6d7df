import { SANDBOX } from '../../src/sandbox/state.js';
import type { Ended } from './command.js';
import { MAILING, type Step } from './plan.js';

/** Whether a fault of the step makes a command wait until it gives up, which takes minutes. */
export const mayHang = ({ command, beside, faults, mail }: Step): boolean =>
  faults.some(({ kind }) => kind === 'timeout') ||
  ([command[0], beside?.[0]].some((name) => MAILING.includes(name ?? '')) &&
    Object.values(mail)
      .flat()
      .some((behavior) => behavior.do === 'silence'));

/** The codes with which a command may end on its own: the documented ones, except for mistakes of people. */
const CODES = [0, 1, 75];
const CODES_OF_SIGNALS = [130, 143];
/** They exit 2 if there is no such job, if its last message is still open, or if nothing is loaded to report on. */
const MAY_BE_REFUSED = ['jobs message', 'report'];

/** Ways in which a command must never end. */
export function endFaults(command: readonly string[], end: Ended, isStruck: boolean): string[] {
  const { code, signal, output } = end;
  const name = command.join(' ');
  const codes = [
    ...CODES,
    ...(isStruck ? CODES_OF_SIGNALS : []),
    ...(MAY_BE_REFUSED.some((refused) => name.startsWith(refused)) ? [2] : []),
  ];
  const isExpected =
    code === null ? signal === 'SIGKILL' || (isStruck && signal === 'SIGTERM') : codes.includes(code);
  return [
    ...(isExpected ? [] : [`${name} ended with ${code ?? signal ?? 'nothing'}`]),
    ...(output.includes('bug in Readership') ? [`${name} reported a bug of its own`] : []),
    ...(/^\s+at .+:\d+:\d+\)?$/m.test(output) ? [`${name} wrote a stack trace`] : []),
    ...(output.includes(SANDBOX.apiKey) ? [`${name} wrote the key`] : []),
  ];
}
