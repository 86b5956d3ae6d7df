type CleanUp = () => unknown;

const ofTest: CleanUp[] = [];
const ofFile: CleanUp[] = [];

/** Runs after the current test, in reverse order: what was opened last is closed first. */
export const afterTest = (cleanUp: CleanUp): unknown => ofTest.push(cleanUp);

/** Runs after the last test of the file. */
export const afterFile = (cleanUp: CleanUp): unknown => ofFile.push(cleanUp);

/** Test files share modules, so only `setup.ts`, which runs for each file, can register hooks. */
export const cleanUpAfterTest = (): Promise<void> => runAll(ofTest);
export const cleanUpAfterFile = (): Promise<void> => runAll(ofFile);

/** Runs all, even after one that fails, because what is left open would stay so in other test files. */
async function runAll(cleanUps: CleanUp[]): Promise<void> {
  const errors: unknown[] = [];
  for (let cleanUp = cleanUps.pop(); cleanUp !== undefined; cleanUp = cleanUps.pop())
    try {
      await cleanUp();
    } catch (error) {
      errors.push(error);
    }
  if (errors.length > 0) throw errors[0];
}
