/** What a sandbox answers to unless told otherwise. Not secrets: anyone who reaches a sandbox may use it. */
export const SANDBOX = {
  host: '127.0.0.1',
  apiKey: 'sandbox_key_not_a_secret',
  /** May export and poll; creating and messaging are refused with 403. */
  readOnlyKey: 'sandbox_read_only_key_not_a_secret',
  projectId: 'prj_sandbox',
  projectName: 'Acme Docs',
  siteUrl: 'https://docs.example.com',
  seed: 1,
  pages: 450,
  jobSeconds: 4,
} as const;
