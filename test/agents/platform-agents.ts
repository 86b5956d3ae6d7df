import type { PlatformOptions } from '../platform.js';
import { reply } from '../serve.js';

/** How a job ends on the platform: with a pull request, without a change, or as failed. */
export type Ending = 'pull request' | 'no change' | 'failed';

/** Answers requests about jobs, which end in these ways, in the order of their creation. `created` has the path of each. */
export function agentsWith(endings: readonly Ending[]) {
  const created: string[] = [];
  const remote = (number: number, hasEnded: boolean) => {
    const ending = endings[number - 1] ?? 'pull request';
    const prLink = ending === 'pull request' ? `https://code.example.com/acme/docs/pull/${number}` : null;
    const status = ending === 'failed' ? 'failed' : 'completed';
    return { id: `job_${number}`, status: hasEnded ? status : 'active', prLink: hasEnded ? prLink : null };
  };
  const answer: NonNullable<PlatformOptions['agents']> = ({ method, url, body }, response) => {
    if (method === 'GET') {
      reply(response, 200, remote(Number(url.pathname.split('_').at(-1)), true));
      return;
    }
    created.push(/^"(\/.*)"$/m.exec((JSON.parse(body) as { prompt: string }).prompt)?.[1] ?? '');
    reply(response, 201, remote(created.length, false));
  };
  return { created, answer };
}
