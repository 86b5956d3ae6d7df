import type { SMTPServerOptions } from 'smtp-server';
import { startMailServer } from '../mail/mail-server.js';
import { inEveryWriting, PASSWORD, USER } from './marks.js';

const ECHO = inEveryWriting(PASSWORD);

/**
 * A mail server that echoes the password in every reply it can, and the passwords that reached it. Accepts logins with the password, unless `refuse` is the code with which it refuses all.
 */
export async function echoingMailServer({
  refuse,
  ...options
}: SMTPServerOptions & { readonly refuse?: number } = {}) {
  const passwords = new Set<string>();
  const server = await startMailServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _, done) => {
      passwords.add(password ?? '');
      const refusal = Object.assign(new Error(ECHO), { responseCode: refuse ?? 535 });
      if (refuse !== undefined || username !== USER || password !== PASSWORD) done(refusal);
      else done(null, { user: USER });
    },
    ...options,
  });
  server.words = ` ${ECHO}`;
  return { server, passwords };
}
