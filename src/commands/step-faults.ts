import { messageOf } from '../errors.js';
import type { StepFault } from '../schedule/step-runner.js';
import type { Runtime } from './runtime.js';

/** Says which steps did not come to their end, and why. */
export function reportFaults(faults: readonly StepFault[], { output, signal }: Runtime): void {
  if (signal.aborted) {
    output.note(
      'Interrupted. What was stored is whole, and shown after the next publish: readership publish, or the next run.',
    );
    return;
  }
  for (const { step, outcome, error } of faults) {
    const words = outcome === 'later' ? 'paused; the next run resumes' : 'failed';
    output.note(`${output.noteColors.red(`${step} ${words}:`)} ${messageOf(error)}`);
  }
}
