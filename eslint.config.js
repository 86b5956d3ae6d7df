import eslint from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  { ignores: ['build', 'dist', 'coverage', 'data', 'templates'] },
  eslint.configs.recommended,
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: { project: './test/tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      // A callback that returns nothing may be written on one line.
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreVoidReturningFunctions: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      // A sixth of the time, for nothing: there is no `enum` here, and types tell apart classes with private members.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      'no-console': 'error',
      'no-restricted-properties': [
        'error',
        { object: 'AbortSignal', property: 'timeout', message: 'Use timeLimit of src/sleep.ts.' },
      ],
    },
  },
  {
    files: ['*.config.js', '*.config.ts', 'bench/**/*.js', 'bin/*.js', 'test/**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
  },
);
