/** The defaults of a sandbox. The keys are not secret: anyone who can reach a sandbox may use it. */
export const SANDBOX = {
  host: '127.0.0.1',
  apiKey: 'sandbox_key_not_a_secret',
  /** A read-only key; creating jobs and sending messages are refused with 403. */
  readOnlyKey: 'sandbox_read_only_key_not_a_secret',
  projectId: 'prj_sandbox',
  projectName: 'Acme Docs',
  siteUrl: 'https://docs.example.com',
  seed: 1,
  pages: 450,
  jobSeconds: 4,
} as const;
