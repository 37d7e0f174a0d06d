import reactHooks from 'eslint-plugin-react-hooks';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores(['**/dist/', '**/node_modules/', 'e2e/output/', 'create/template/']),
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: 'error',
      'no-console': ['error', { allow: ['error'] }],
      // Numbers in messages are no mistake.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // It believes that what was false before an await still is.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // What is left out of an object is named in front of its rest.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      // Types of object literals are meant to be assignable to records; interfaces are not.
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/consistent-indexed-object-style': 'off',
      // JSON objects are maps to the compiler, yet read best as what they are.
      '@typescript-eslint/dot-notation': 'off',
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { string: true, number: true } }],
    },
  },
  {
    // The SDK's public face is its index: whoever reaches behind it would not notice that others cannot.
    files: ['portal/**/*.ts', 'portal/**/*.tsx', 'mock/**/*.ts', 'mock/**/*.tsx', 'conformance/**/*.ts', 'e2e/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '(^|/)sdk/(?!src/(tabs/)?index\\.ts$|examples/(compile|guides|standins/.*)\\.ts$|devtools$|offline$|react$|tabs$|testing$)', message: "Of the SDK, its public face only: '@kubecast/sdk', '@kubecast/sdk/react', or sdk/src/index.ts." },
          ],
        },
      ],
    },
  },
  {
    // It runs in workers and in Node, and has no dependencies.
    files: ['sdk/src/**/*.ts'],
    ignores: ['**/*.test.ts', 'sdk/src/{react,vue,svelte,solid}.ts', 'sdk/src/{tabs,devtools,offline}/*.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ regex: '^(?!\\./)', message: 'The SDK has no dependencies: only what is beside it.' }] }],
    },
  },
  {
    files: ['sdk/src/tabs/*.ts', 'sdk/src/devtools/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ regex: '^(?!\\./|\\.\\./[a-z]+\\.ts$)', message: 'The SDK has no dependencies: only what is beside it.' }] }],
    },
  },
  {
    files: ['sdk/src/offline/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ regex: '^(?!\\./|\\.\\./[a-z]+\\.ts$|idb$)', message: 'Its one dependency is idb.' }] }],
    },
  },
  {
    files: ['portal/src/**/*.tsx', 'portal/src/**/*.ts'],
    extends: [reactHooks.configs.flat['recommended-latest']],
    // Concerns the React Compiler, which is not used.
    rules: { 'react-hooks/incompatible-library': 'off' },
  },
);
