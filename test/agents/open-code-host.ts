import { expect, onTestFinished } from 'vitest';
import { CodeHost } from '../../src/agents/code-host.js';
import { settingsSchema } from '../../src/config/schema.js';
import { NOW } from '../sandbox/open-sandbox.js';

/** The code host of these `pullRequests`, reached at `apiUrl` if one is given, and closed after the test. */
export function openCodeHost(
  pullRequests: object,
  { apiUrl, token, now = () => NOW }: { apiUrl?: string; token?: string | undefined; now?: () => Date } = {},
): CodeHost {
  const settings =
    settingsSchema.parse({
      ...{ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }], pullRequests },
    }).pullRequests ?? expect.fail('not configured');
  const host = new CodeHost({ ...settings, ...(apiUrl !== undefined && { apiUrl }) }, token, now);
  onTestFinished(() => host.close());
  return host;
}
