import type { Books } from '../books.js';
import { repeated } from './records.js';

/** How many copies of an email a mail server may have accepted, by its stored state. */
const COPIES: Readonly<Record<string, readonly [least: number, most: number]>> = {
  sending: [0, 1],
  unknown: [0, 1],
  sent: [1, 1],
  waiting: [0, 0],
  failed: [0, 0],
};

/** Emails that arrived twice, or that the state does not account for. */
export function mailFaults({ emails }: Books, accepted: ReadonlyMap<string, readonly Buffer[]>) {
  const arrived = [...accepted].flatMap(([recipient, mails]) =>
    mails.map((mail) => ({ recipient, id: /^Message-ID: (\S+)/im.exec(mail.toString('latin1'))?.[1] ?? '' })),
  );
  return [
    ...repeated(arrived.map(({ recipient, id }) => `${id} to ${recipient}`)),
    ...arrived.flatMap(({ recipient, id }) =>
      emails.some((email) => email.recipient === recipient && email.message_id === id)
        ? []
        : [`${id} to ${recipient} is not stored`],
    ),
    ...emails.flatMap(({ report, period, recipient, state, message_id }) => {
      const copies = arrived.filter((mail) => mail.recipient === recipient && mail.id === message_id).length;
      const [least, most] = COPIES[state] ?? [1, 0];
      return copies >= least && copies <= most
        ? []
        : [`${report} ${period} to ${recipient} is ${state}, but arrived ${copies} times`];
    }),
  ];
}

/** Whether the outage of an alert continues; its period names the step and the start. */
function isGoingOn(period: string, runs: Books['runs']): boolean {
  const [step, since = '', over] = period.split(' ');
  return (
    over === undefined &&
    !runs.some(
      (run) => run.step === step && run.outcome === 'done' && Date.parse(run.started_at) > Date.parse(since),
    )
  );
}

/** Emails that should have been sent or given up, because the mail server has worked for days. */
export const openMails = (
  { emails, runs }: Books,
  due: readonly (readonly [report: string, recipient: string])[],
): string[] => [
  ...emails
    // An alert that could not be sent during its outage is not sent once that is over.
    .filter(
      ({ report, period, state }) =>
        state === 'sending' || (state === 'waiting' && (report !== 'alert' || isGoingOn(period, runs))),
    )
    .map(({ report, period, recipient, state }) => `${report} ${period} to ${recipient} is ${state}`),
  ...due
    .filter(
      ([report, recipient]) => !emails.some((row) => row.report === report && row.recipient === recipient),
    )
    .map(([report, recipient]) => `${recipient} got no ${report}`),
];
