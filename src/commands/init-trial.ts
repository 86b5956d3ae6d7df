import { readSitemapFile } from '../agents/sitemap.js';
import { openOrCreateState } from '../app/open.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { connections } from '../network.js';
import { findingLines } from '../print/status.js';
import { tryPlatform } from '../service/try-platform.js';
import { timeLimit } from '../sleep.js';
import { requestsOf } from '../state/requests.js';
import { type InitAnswers, KEY } from './init-files.js';

/** Requests for views that were sent, by the bucket in which they count. */
export type SentRequests = Map<string, number>;

/** Prints whether the platform has what Readership needs. True if too little is known to try it. */
export async function platformWorks(
  { url, project, key }: InitAnswers,
  runtime: Runtime,
  sent: SentRequests,
): Promise<boolean> {
  if (url === undefined || project === undefined || key === undefined) return true;
  const onViews = (bucket: string) => void sent.set(bucket, 1 + (sent.get(bucket) ?? 0));
  const findings = await tryPlatform(url, project, { [KEY]: key }, runtime, onViews).catch(
    (error: unknown) => {
      if (!(error instanceof ConfigurationError)) throw error;
      return [{ check: 'key', verdict: 'fail' as const, words: error.message }];
    },
  );
  runtime.output.words(findingLines(findings, runtime.output.colors));
  return !findings.some(({ verdict }) => verdict === 'fail');
}

const SITEMAP_TIMEOUT_MS = 5_000;

/** The address of the site's sitemap, found with one request; undefined if there is none. */
export async function findSitemap(
  siteUrl: string | undefined,
  { signal }: Runtime,
): Promise<string | undefined> {
  if (siteUrl === undefined) return undefined;
  const address = `${siteUrl.replace(/\/+$/, '')}/sitemap.xml`;
  const agent = connections();
  try {
    await readSitemapFile(address, agent, timeLimit(SITEMAP_TIMEOUT_MS, signal));
    return address;
  } catch {
    // Most sites without one answer 404, and others a page of HTML.
    signal.throwIfAborted();
    return undefined;
  } finally {
    await agent.destroy();
  }
}

/** Counts the requests in the new workspace: the platform may count them too. */
export async function countRequests(sent: SentRequests, runtime: Runtime): Promise<void> {
  if (sent.size === 0) return;
  try {
    const { state } = await openOrCreateState(await readWorkspace({}, runtime));
    try {
      for (const [bucket, count] of sent)
        await requestsOf(state, bucket).count({ sent: count, refused: 0 }, runtime.now());
    } finally {
      state.close();
    }
  } catch (error) {
    // The files are written, and the next command says the same if it matters.
    runtime.output.note(messageOf(error));
  }
}
