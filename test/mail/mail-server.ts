import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';
import { afterFile } from '../cleanup.js';

/** What the server does with an email for a recipient. Numbers are reply codes. */
export type Behavior =
  | { readonly on: 'rcpt'; readonly do: number | 'drop' | 'silence' }
  /** `drop-accepted` and `silence` accept the email without a reply; `drop-lost` loses it. */
  | { readonly on: 'data'; readonly do: number | 'drop-accepted' | 'drop-lost' | 'silence' }
  | { readonly on: 'data'; readonly do: 'delay'; readonly ms: number };

/** The step of a conversation; `accepted` comes before the reply is sent. */
export type ServerEvent = 'connect' | 'rcpt' | 'data' | 'accepted';

/** A real SMTP server on loopback that records what it accepted. */
export interface MailServer {
  readonly port: number;
  /** Accepted emails by recipient, whether or not the sender got a reply. */
  readonly accepted: Map<string, Buffer[]>;
  /** By recipient; everything else is accepted. Each conversation uses up one entry of the list. */
  readonly behaviors: Map<string, Behavior[]>;
  onEvent: (event: ServerEvent, recipient: string) => void;
  /** What it adds to its replies about emails. */
  words: string;
  close(): Promise<void>;
}

/** Serves until the tests of the file are over. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const accepted = new Map<string, Buffer[]>();
  const behaviors = new Map<string, Behavior[]>();
  const planned = new Map<string, Behavior>();
  let closed: Promise<void> | undefined;
  const drop = ({ id }: SMTPServerSession) => {
    for (const connection of server.connections) if (connection.id === id) connection._socket.destroy();
  };
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    closeTimeout: 100,
    onConnect: (_, done) => {
      mailServer.onEvent('connect', '');
      done();
    },
    onRcptTo: ({ address }, session, done) => {
      mailServer.onEvent('rcpt', address);
      const behavior = behaviors.get(address)?.shift();
      if (behavior !== undefined) planned.set(session.id, behavior);
      if (behavior?.on !== 'rcpt') done();
      else if (behavior.do === 'drop') drop(session);
      else if (behavior.do !== 'silence') done(reply(behavior.do, mailServer.words));
    },
    onData: (stream, session, done) => {
      const recipient = session.envelope.rcptTo[0]?.address ?? '';
      mailServer.onEvent('data', recipient);
      const behavior = planned.get(session.id);
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        const take = () => {
          accepted.set(recipient, [...(accepted.get(recipient) ?? []), Buffer.concat(parts)]);
          mailServer.onEvent('accepted', recipient);
        };
        if (behavior?.on !== 'data') {
          take();
          done(null, `queued${mailServer.words}`);
        } else if (behavior.do === 'delay') {
          setTimeout(() => {
            take();
            done(null, `queued${mailServer.words}`);
          }, behavior.ms);
        } else if (typeof behavior.do === 'number') done(reply(behavior.do, mailServer.words));
        else {
          if (behavior.do !== 'drop-lost') take();
          if (behavior.do !== 'silence') drop(session);
        }
      });
    },
    ...options,
  });
  // A client that is killed resets its connection; that is what these tests are about.
  server.on('error', () => undefined);
  const mailServer: MailServer = {
    port: 0,
    accepted,
    behaviors,
    onEvent: () => undefined,
    words: '',
    close: () => (closed ??= new Promise((resolve) => server.close(resolve))),
  };
  afterFile(() => mailServer.close());
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return Object.assign(mailServer, { port: (listening.address() as AddressInfo).port });
}

const reply = (responseCode: number, words: string): Error =>
  Object.assign(new Error(`says ${responseCode}${words}`), { responseCode });
