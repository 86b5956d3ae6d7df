import { ReadershipError } from '../errors.js';
import type { StepResult } from './context.js';

/** The result of a step, with the worst of the faults that it met. */
export const withFaults = <Detail>(
  result: StepResult<Detail>,
  faults: readonly unknown[],
): StepResult<Detail> => (faults.length === 0 ? result : { ...result, fault: worstOf(faults) });

/** What somebody must mend comes before what mends itself: a pause must not hide it. */
const worstOf = (faults: readonly unknown[]): unknown =>
  faults.find((fault) => !(fault instanceof ReadershipError && fault.exitCode === 75)) ?? faults[0];
