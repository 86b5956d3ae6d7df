import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createSecureServer } from 'node:tls';
import { afterFile } from '../cleanup.js';
import { run } from './install.js';

/** A certificate for some names, signed by nobody that Node.js knows. */
export async function certificateFor(directory: string, ...names: string[]) {
  await mkdir(directory, { recursive: true });
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const alternatives = `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`;
  const subject = ['-subj', `/CN=${names[0] ?? ''}`, '-addext', alternatives, '-days', '2', '-nodes'];
  await run('openssl', ['req', '-x509', '-newkey', 'rsa:2048', ...subject, '-keyout', key, '-out', cert]);
  return { file: cert, key: readFileSync(key), cert: readFileSync(cert) };
}

/** Serves what is on `port` with TLS. Returns its own port. */
export const serveSecurely = (identity: { key: Buffer; cert: Buffer }, port: number): Promise<number> =>
  listen(createSecureServer(identity, (socket) => joinSockets(socket, connect(port, '127.0.0.1'))));

/** A proxy that asks for a login, connects everyone to `port`, and records the hosts that were asked for. */
export async function proxyWithLogin(login: string, port: number) {
  const asked: string[] = [];
  const token = `Basic ${Buffer.from(login).toString('base64')}`;
  const proxy = createServer().on('connect', ({ url = '', headers }, socket: Socket) => {
    asked.push(url);
    if (headers['proxy-authorization'] !== token) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    joinSockets(socket, connect(port, '127.0.0.1'));
  });
  return { address: `127.0.0.1:${await listen(proxy)}`, asked };
}

function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const)
    from.pipe(to).on('error', () => from.destroy());
}

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  afterFile(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
