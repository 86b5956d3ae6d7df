import type { Books } from '../books.js';
import { repeated } from './ledgers.js';

/** How many copies a mail server may have taken of a mail whose delivery is in a state. */
const COPIES: Readonly<Record<string, readonly [least: number, most: number]>> = {
  sending: [0, 1],
  unknown: [0, 1],
  sent: [1, 1],
  waiting: [0, 0],
  failed: [0, 0],
};

/** Mails that arrived twice, or that the ledger does not answer for. */
export function mailFaults(
  { deliveries }: Books,
  accepted: ReadonlyMap<string, readonly Buffer[]>,
): string[] {
  const arrived = [...accepted].flatMap(([recipient, mails]) =>
    mails.map((mail) => ({ recipient, id: /^Message-ID: (\S+)/im.exec(mail.toString('latin1'))?.[1] ?? '' })),
  );
  return [
    ...repeated(arrived.map(({ recipient, id }) => `${id} to ${recipient}`)),
    ...arrived.flatMap(({ recipient, id }) =>
      deliveries.some((delivery) => delivery.recipient === recipient && delivery.message_id === id)
        ? []
        : [`${id} to ${recipient} is in no delivery`],
    ),
    ...deliveries.flatMap(({ report, period, recipient, state, message_id }) => {
      const copies = arrived.filter((mail) => mail.recipient === recipient && mail.id === message_id).length;
      const [least, most] = COPIES[state] ?? [1, 0];
      return copies >= least && copies <= most
        ? []
        : [`${report} ${period} to ${recipient} is ${state}, and arrived ${copies} times`];
    }),
  ];
}

/** Mails that should have gone out, or been given up, when the mail server has been well for days. */
export const openMails = (
  { deliveries }: Books,
  due: readonly (readonly [report: string, recipient: string])[],
): string[] => [
  ...deliveries
    // An alert that could not be sent while its outage lasted is not sent once that is over.
    .filter(({ report, state }) => state === 'sending' || (state === 'waiting' && report !== 'alert'))
    .map(({ report, period, recipient, state }) => `${report} ${period} to ${recipient} is ${state}`),
  ...due
    .filter(
      ([report, recipient]) =>
        !deliveries.some((row) => row.report === report && row.recipient === recipient),
    )
    .map(([report, recipient]) => `${recipient} has got no ${report}`),
];
