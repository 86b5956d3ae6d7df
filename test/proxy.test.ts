import { describe, expect, it } from 'vitest';
import { type Proxy, proxyFor } from '../src/proxy.js';

const PROXY = 'http://proxy.test:3128';
const proxyOf = (url: string, environment: Record<string, string>): Proxy | undefined =>
  proxyFor(new URL(url), environment);

describe('the proxy of an address', () => {
  it.each<[string, Record<string, string>]>([
    ['https://a.test', { HTTPS_PROXY: PROXY }],
    ['https://a.test', { https_proxy: PROXY }],
    ['http://a.test', { HTTP_PROXY: PROXY }],
    ['http://a.test', { http_proxy: PROXY }],
    ['http://a.test', { http_proxy: '', HTTP_PROXY: PROXY }],
    ['https://a.test', { https_proxy: '', HTTPS_PROXY: PROXY, HTTP_PROXY: 'http://other.test' }],
    ['https://a.test', { https_proxy: PROXY, HTTPS_PROXY: 'http://other.test' }],
    ['https://a.test', { HTTP_PROXY: PROXY }],
    ['https://a.test', { HTTPS_PROXY: 'proxy.test:3128' }],
  ])('of %s is the one that %j names', (url, environment) => {
    expect(proxyOf(url, environment)).toEqual({ uri: PROXY });
  });

  it.each<[string, Record<string, string>]>([
    ['https://a.test', {}],
    ['https://a.test', { HTTPS_PROXY: '', https_proxy: '' }],
    ['http://a.test', { HTTPS_PROXY: PROXY }],
    ['http://localhost:8080', { HTTP_PROXY: PROXY }],
    ['http://127.0.0.1:8080', { HTTP_PROXY: PROXY }],
    ['http://127.8.8.8', { HTTP_PROXY: PROXY }],
    ['http://[::1]:8080', { HTTP_PROXY: PROXY }],
  ])('of %s is none with %j', (url, environment) => {
    expect(proxyOf(url, environment)).toBeUndefined();
  });

  it.each([
    ['*', 'https://a.test'],
    ['b.test, *', 'https://a.test'],
    ['a.test', 'https://a.test'],
    ['a.test', 'https://x.a.test'],
    ['.a.test', 'https://a.test'],
    ['*.a.test', 'https://x.a.test'],
    ['A.Test.', 'https://a.test.'],
    ['b.test a.test', 'https://a.test'],
    ['a.test:443', 'https://a.test'],
    ['a.test:8443', 'https://a.test:8443'],
    ['10.1.2.3', 'https://10.1.2.3'],
    ['10.0.0.0/8', 'https://10.1.2.3'],
    ['::2', 'https://[::2]'],
    ['[::2]', 'https://[0:0::2]'],
    ['[::2]:8443', 'https://[::2]:8443'],
    ['fd00::/8', 'https://[fd12::1]:8443'],
  ])('is none if NO_PROXY=%s, for %s', (list, url) => {
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, NO_PROXY: list })).toBeUndefined();
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, no_proxy: '', NO_PROXY: list })).toBeUndefined();
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, no_proxy: list, NO_PROXY: 'z.test' })).toBeUndefined();
  });

  it.each([
    ['', 'https://a.test'],
    [',.,', 'https://a.test'],
    ['a.test', 'https://ba.test'],
    ['a.test:8443', 'https://a.test'],
    ['a.test:443', 'https://a.test:8443'],
    ['10.0.0.0/8', 'https://11.1.2.3'],
    ['10.0.0.0/99', 'https://10.1.2.3'],
    ['10.0.0.0/8', 'https://[::2]'],
    ['::2', 'https://[::3]'],
  ])('is used in spite of NO_PROXY=%s, for %s', (list, url) => {
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, NO_PROXY: list })).toEqual({ uri: PROXY });
  });

  it.each([
    ['http://ann:pass-word@proxy.test:3128', 'ann:pass-word'],
    ['ann:pass-word@proxy.test:3128', 'ann:pass-word'],
    ['http://ann:p%40ss%2Fword@proxy.test:3128', 'ann:p@ss/word'],
    ['http://token@proxy.test:3128', 'token:'],
  ])('gets the login of %s', (address, login) => {
    const token = `Basic ${Buffer.from(login).toString('base64')}`;
    expect(proxyOf('https://a.test', { HTTPS_PROXY: address })).toEqual({ uri: PROXY, token });
  });

  it.each(['http://', 'socks5://ann:secret@proxy.test:1080', 'http://ann:%zz@proxy.test', 'two words'])(
    'cannot be %s, which is not repeated',
    (address) => {
      const read = () => proxyOf('https://a.test', { HTTPS_PROXY: address });
      expect(read).toThrow('HTTPS_PROXY is not the address of an HTTP proxy');
      expect(read).not.toThrow(/ann|zz|words/);
    },
  );
});
