/** Every command, in an order in which each finds what it needs; `[]` is the command without arguments. */
export const COMMANDS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  run: [[]],
  export: [[], ['--plan']],
  audit: [[], ['--repair']],
  improve: [[], ['--apply']],
  'jobs list': [[], ['--json']],
  'jobs show': [['1']],
  'jobs message': [['1', 'Mention the limits.']],
  'jobs poll': [[]],
  'jobs settle': [
    ['1', '--closed'],
    ['1', '--sent', 'job_1'],
  ],
  'report list': [[]],
  'report show': [['weekly']],
  'report send': [['weekly', '--force']],
  'report resolve': [['weekly', '--delivered', 'a@example.com']],
  'report new': [['sections']],
  publish: [['--parquet', 'dataset']],
  restore: [[]],
  adopt: [[]],
  status: [['--json']],
  doctor: [[]],
  mcp: [[]],
  sql: [['FROM runs'], ['FROM page_views', '--format', 'parquet', '--output', 'views.parquet']],
  serve: [['--port', '0']],
  start: [[]],
  init: [[]],
  sandbox: [['--port', '0']],
};
/** Commands that need a new workspace: something is due at once, or no file may exist. */
export const APART = new Set(['start', 'init', 'sandbox']);
