// What stands in the README and in the guides must compile as it stands there, against types as `kubecast types` writes them.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'vue/compiler-sfc';
import { complaintsOf } from '../../mock/typecheck.ts';
import { blocks, kubernetes } from '../examples/guides.ts';

const guide = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const examples = [...guide.matchAll(/^```(tsx?)\n([^]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }));
// What compilers of components, and frameworks that are not here, would say.
const parts = `
declare module '*.vue' { const component: import('vue').Component; export default component; }
declare module '*.svelte' { const component: import('svelte').Component<Record<string, unknown>>; export default component; }
declare module 'next/headers' { export function cookies(): Promise<{ get(name: string): { readonly value: string } | undefined }> }
declare module 'expo/fetch' { export const fetch: typeof globalThis.fetch }
declare module 'react-native' {
  import type { FunctionComponent, ReactNode } from 'react';
  type AppStateStatus = 'active' | 'background' | 'inactive' | 'unknown' | 'extension';
  export const AppState: { currentState: AppStateStatus; addEventListener(type: 'change' | 'memoryWarning' | 'blur' | 'focus', listener: (state: AppStateStatus) => void): { remove: () => void } };
  export function FlatList<T>(props: { data: readonly T[]; keyExtractor: (item: T) => string; renderItem: (of: { item: T }) => ReactNode; ListEmptyComponent: ReactNode }): ReactNode;
  export const Text: FunctionComponent<{ children?: ReactNode }>;
}
`;

/** As the compiler takes it; of a component its script. */
function compiled(key: string, code: string): [string, string] {
  const name = `guides/${key}`;
  if (key.endsWith('.vue')) return [name.replace('.vue', '-vue.ts'), `${parse(code).descriptor.scriptSetup?.content}\nexport {};\n`];
  if (key.endsWith('.svelte')) return [name.replace('.svelte', '-svelte.ts'), `import 'svelte';\n${/<script lang="ts">([^]*?)<\/script>/.exec(code)?.[1]}\nexport {};\n`];
  return [name, code.includes("from 'solid-js") ? `/** @jsxImportSource solid-js */${code}` : code];
}

test('each example compiles, and the first page has less than fifteen lines', () => {
  expect(examples).toHaveLength(15);
  const [first] = examples.filter(({ code }) => code.includes('<StrictMode>'));
  const files = Object.fromEntries(examples.map(({ language, code }, n) => [`example${n}.${language}`, code]));
  const guides = Object.fromEntries([...blocks].map(([key, code]) => compiled(key, code)));
  guides['guides/vue/wrong.ts'] = `${guides['guides/vue/Job-vue.ts']}job.value.data?.status?.actve;\n`;
  expect(blocks.size).toBeGreaterThan(30);
  expect(complaintsOf({ 'parts.d.ts': parts, 'kubernetes.ts': kubernetes, ...guides, ...files, 'wrong.tsx': (first?.code ?? '').replace("'status.active']", "'status.actve']") })).toEqual([
    expect.stringMatching(/^guides\/vue\/wrong\.ts:\d+ Property 'actve' does not exist/),
    expect.stringMatching(/^wrong\.tsx:8 .*is not a path of these objects/),
    expect.stringContaining("Property 'active' does not exist"),
  ]);
  expect(first?.code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThan(15);
});

test('each subpath that it names is one of the package', () => {
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { exports: Record<string, unknown> };
  for (const [, path = ''] of guide.matchAll(/@kubecast\/sdk\/(\w+)/g)) expect(Object.keys(exports)).toContain(`./${path}`);
});

/** The blocks that some files begin, and those that these begin. */
function begunBy(...files: readonly string[]): Set<string> {
  const texts = files.map((name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')).join('');
  const run = new Set([...texts.matchAll(/'guide:([^']+)'/g)].map(([, key = '']) => key));
  for (const key of run) {
    for (const [, name = ''] of (blocks.get(key) ?? '').matchAll(/from '(\.[^']+)'/g)) run.add(new URL(name, `file:///${key}`).pathname.slice(1));
  }
  return run;
}

test('each block of a guide is run by a test, or by a block that is', () => {
  const run = begunBy(...['guides', 'native', 'offline', 'proxy', 'server'].map((name) => `examples/${name}.test.ts`));
  expect([...blocks.keys()].filter((key) => !run.has(key))).toEqual([]);
});

test('each block of a guide is run against a real gateway, too, but the one that is a test with the mock, and the configuration of a proxy', () => {
  const run = begunBy('../e2e/gateway.test.ts', '../e2e/login.test.ts', '../e2e/support/guides.ts');
  expect([...blocks.keys()].filter((key) => !run.has(key))).toEqual(['testing/Jobs.test.tsx', 'readme/vite.config.ts']);
});

test('the table of names has what the entries of frameworks export, in one scheme', async () => {
  const section = /\n## Names\n([^]*?)\n## /.exec(guide)?.[1] ?? '';
  const rows = [...section.matchAll(/^\|(.*)\|$/gm)].map(([, row = '']) => row.split('|').map((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)));
  const named = rows.filter(([first]) => first?.[0]?.startsWith('use'));
  for (const [[react = ''] = [], [suspense] = [], vue, svelte, solid] of named) {
    const x = react.slice(3);
    expect({ suspense: suspense ?? `useSuspense${x}`, vue, svelte, solid }).toEqual({ suspense: `useSuspense${x}`, vue: [react], svelte: [x.charAt(0).toLowerCase() + x.slice(1)], solid: [`create${x}`] });
  }
  const others = rows.filter((cells) => cells.length === 5).slice(1);
  const column = (n: number, m: number): string[] => [...named.flatMap((cells) => cells[n] ?? []), ...others.flatMap((cells) => cells[m] ?? [])];
  const react = [...column(0, 1), ...column(1, -1)];
  const exported = async (name: string): Promise<string[]> => Object.keys((await import(`./${name}.ts`)) as object).sort();
  expect(named.length).toBeGreaterThan(10);
  expect(await exported('react')).toEqual(react.sort());
  expect(await exported('vue')).toEqual(column(2, 2).sort());
  expect(await exported('svelte')).toEqual(column(3, 3).sort());
  expect(await exported('solid')).toEqual(column(4, 4).sort());
});
