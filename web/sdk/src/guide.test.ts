// What stands in the guide must compile as it stands there, against types as `kubecast types` writes them.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { complaintsOf } from '../../mock/typecheck.ts';

const guide = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const examples = [...guide.matchAll(/^```(tsx?)\n([^]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }));
// Their shape is that of the written ones; see cli/types.test.ts, which compiles those.
const kubernetes = `
import { defineResource, type KubeObject } from '@kubecast/sdk';
export interface Job extends KubeObject { readonly status?: { readonly active?: number; readonly succeeded?: number } }
export interface Pod extends KubeObject { readonly status?: { readonly phase?: string } }
export const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
export const pods = defineResource<Pod>()({ version: 'v1', plural: 'pods' });
`;

test('each example compiles, and the first page has less than fifteen lines', () => {
  expect(examples).toHaveLength(13);
  const files = Object.fromEntries(examples.map(({ language, code }, n) => [`example${n}.${language}`, code]));
  expect(complaintsOf({ 'kubernetes.ts': kubernetes, ...files, 'wrong.tsx': (examples[0]?.code ?? '').replace("'status.active']", "'status.actve']") })).toEqual([
    expect.stringMatching(/^wrong\.tsx:8 .*'never'/),
    expect.stringContaining("Property 'active' does not exist"),
  ]);
  const [first] = examples.filter(({ code }) => code.includes('<StrictMode>'));
  expect(first?.code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThan(15);
}, 120_000);

test('each subpath that it names is one of the package', () => {
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { exports: Record<string, unknown> };
  for (const [, path = ''] of guide.matchAll(/@kubecast\/sdk\/(\w+)/g)) expect(Object.keys(exports)).toContain(`./${path}`);
});
