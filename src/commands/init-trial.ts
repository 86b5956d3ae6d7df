import { readSitemapFile } from '../agents/sitemap.js';
import { guessVariants, type Variants } from '../agents/variants.js';
import { openOrCreateState } from '../app/open.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { tryMailServer } from '../mail/transport.js';
import { connections } from '../network.js';
import { pageOf } from '../page.js';
import { findingLines } from '../print/status.js';
import { tryPlatform } from '../service/try-platform.js';
import { timeLimit } from '../sleep.js';
import { requestsOf } from '../state/requests.js';
import { type InitAnswers, KEY } from './init-files.js';

/** Prints whether the mail server takes a login, with one greeting. True if there is none to try. */
export async function mailServerWorks({ email, smtpUrl }: InitAnswers, runtime: Runtime): Promise<boolean> {
  if (smtpUrl === undefined) return true;
  const domain = email?.split('@').at(-1);
  const finding = await tryMailServer(smtpUrl, domain, runtime.signal).then(
    (words) => ({ check: 'mail server', verdict: 'pass' as const, words }),
    (error: unknown) => ({ check: 'mail server', verdict: 'fail' as const, words: messageOf(error) }),
  );
  runtime.output.words(findingLines([finding], runtime.output.colors));
  return finding.verdict === 'pass';
}

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

/** Where a site has its sitemap, usually. */
export const sitemapOf = (siteUrl: string): string => `${siteUrl.replace(/\/+$/, '')}/sitemap.xml`;

/** The address of the site's sitemap, and the translations and versions in it, found with one request; undefined without one. */
export async function findSitemap(
  siteUrl: string | undefined,
  { signal }: Runtime,
): Promise<{ readonly address: string; readonly variants: Variants } | undefined> {
  if (siteUrl === undefined) return undefined;
  const address = sitemapOf(siteUrl);
  const agent = connections();
  try {
    const { root, addresses } = await readSitemapFile(address, agent, timeLimit(SITEMAP_TIMEOUT_MS, signal));
    const pages = root === 'urlset' ? addresses.map(({ pathname }) => pageOf(pathname)) : [];
    return { address, variants: guessVariants(pages) };
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
