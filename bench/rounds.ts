import { type Measured, measure, median, type Program } from './processes.js';

export const print = (...cells: readonly string[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
export const thousands = (value: number) => Math.round(value).toLocaleString('en-US');
export const seconds = (value: number) => `${value.toFixed(2)} s`;

/** Medians of several runs of each program, in turn in each round, so that all run under the same conditions. */
export async function alternate(
  programs: Readonly<Record<string, () => Promise<Program>>>,
  rounds: number,
): Promise<Record<string, Measured>> {
  const entries = Object.entries(programs);
  const runs = new Map<string, Measured[]>(entries.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const [name, program] of entries) runs.get(name)?.push(await measure(await program()));
  const medians = [...runs].map(([name, of]) => {
    const middle = (key: 'elapsedS' | 'processorS' | 'peakMb') => median(of.map((run) => run[key]));
    return [
      name,
      { elapsedS: middle('elapsedS'), processorS: middle('processorS'), peakMb: middle('peakMb') },
    ];
  });
  return Object.fromEntries(medians) as Record<string, Measured>;
}
