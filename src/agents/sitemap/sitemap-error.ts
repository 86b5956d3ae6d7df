import { ReadershipError } from '../../errors.js';

/** The sitemap that says which pages there are cannot be used, so no page can be chosen. */
export class SitemapError extends ReadershipError {
  readonly exitCode = 1;

  constructor(source: string, what: string, options?: ErrorOptions) {
    super(
      `Cannot use the sitemap ${source} (improve.sitemap): ${what}. No page was chosen, and no job created.`,
      options,
    );
  }
}
