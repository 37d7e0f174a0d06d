// What an editor offers where paths are written, asked of the language service that editors ask.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { beforeAll, expect, test } from 'vitest';
import { kindsOf, type Document } from '../cli/openapi.ts';
import { moduleOf } from '../cli/typescript.ts';
import { strictest } from '../../mock/typecheck.ts';

const folder = fileURLToPath(new URL('./completion/', import.meta.url));
const main = `${folder}main.ts`;
const begin = `
import { counts, createKubecast, page, type KubeObject, type PageQuery, type Resource } from '@kubecast/sdk';
import { useInfiniteList, useLivePage, useWatch } from '@kubecast/sdk/react';
import { createCount } from '@kubecast/sdk/solid';
import { useLivePage as useInVue } from '@kubecast/sdk/vue';
import { jobs, pods, type Pod } from './kubernetes.ts';
const kc = createKubecast();
`;
// Jobs as a real API server describes them, and pods by hand.
const documents = [JSON.parse(readFileSync(new URL('../cli/fixtures/batch.json', import.meta.url), 'utf8')) as Document];
const kubernetes = `${moduleOf(documents, kindsOf(documents))}
import type { KubeObject } from '@kubecast/sdk';
export interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { readonly name: string }[] };
  readonly status?: { readonly phase?: string };
}
export const pods = defineResource<Pod>()({ version: 'v1', plural: 'pods' });
`;
const files: Record<string, string> = { [main]: begin, [`${folder}kubernetes.ts`]: kubernetes };
let version = 0;
let service: ts.LanguageService;

beforeAll(() => {
  service = ts.createLanguageService({
    getCompilationSettings: () => strictest,
    getScriptFileNames: () => Object.keys(files),
    getScriptVersion: (name) => (name === main ? String(version) : '0'),
    getScriptSnapshot: (name) => {
      const text = files[name] ?? ts.sys.readFile(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => folder,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (name) => name in files || ts.sys.fileExists(name),
    readFile: (name) => files[name] ?? ts.sys.readFile(name),
    directoryExists: (name) => ts.sys.directoryExists(name) || name === folder.slice(0, -1),
    getDirectories: (name) => ts.sys.getDirectories(name),
  });
});

/** What is offered at the `|` of a line. */
function offered(line: string): string[] {
  files[main] = begin + line.replace('|', '');
  version++;
  return (service.getCompletionsAtPosition(main, begin.length + line.indexOf('|'), {})?.entries ?? []).map(({ name }) => name.replace(/^['"](.*)['"]$/, '$1'));
}

/** What the compiler says of a line. */
function complaints(line: string): string[] {
  files[main] = begin + line;
  version++;
  return service.getSemanticDiagnostics(main).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

test.each([
  ["kc.watch(jobs, { where: { '|': 'x' } });", ['status.active', 'spec.suspend', 'metadata.name', '$status'], ['status', 'metadata.labels', '-status.active', '$restarts']],
  ["kc.watch(jobs, { fields: ['|'] });", ['status', 'status.active', 'metadata.labels', '$status'], ['-status', '$restarts']],
  ["useWatch(jobs, { namespace: 'a', fields: ['status.active', '|'] });", ['status', 'status.active', '$status'], ['-status']],
  ["useLivePage(pods, { limit: 9, sort: ['|'] });", ['status.phase', '-status.phase', '-$restarts', '$requests.cpu', '-metadata.creationTimestamp'], ['status', '-status']],
  ["useLivePage(pods, { limit: 9, where: { '|': 'x' } });", ['status.phase', 'spec.nodeName', '$ready'], ['status']],
  ["useInfiniteList(jobs, { limit: 9, sort: ['-metadata.name', '|'] });", ['status.active', '-status.active', '-$status'], ['$restarts']],
  ["useInVue(jobs, () => ({ limit: 9, sort: ['|'] }));", ['-status.active'], []],
  ["page(jobs, { limit: 9, sort: ['|'] });", ['-status.active'], []],
  ["counts(pods, ['|'], {});", ['status.phase', '$status', '$restarts'], ['status', '-status.phase']],
  ["createCount(pods, ['status.phase'], () => ({ where: { '|': 'x' } }));", ['spec.nodeName'], []],
  ["page<Pod>({ version: 'v1', plural: 'pods' }, { limit: 9, sort: ['|'] });", ['-status.phase', 'metadata.name'], ['status']],
])('%s', (line, some, none) => {
  const names = offered(line);
  expect(some.filter((name) => !names.includes(name)), names.join()).toEqual([]);
  expect(names.filter((name) => none.includes(name))).toEqual([]);
});

test('within the quotes of a key no path is offered that would be another one there', () => {
  const names = offered("useLivePage(pods, { limit: 9, where: { '|': 'x' } });");
  expect(names).toContain('$requests.cpu');
  expect(names.filter((name) => name.includes('\\'))).toEqual([]);
  expect(offered("useLivePage(pods, { limit: 9, sort: ['|'] });")).toContain('-$requests.nvidia\\\\.com/gpu');
});

test('what no type knows is sorted and selected by all the same', () => {
  const any = `
  const asked: string[] = ['-spec.size', 'metadata.labels.team'];
  page(jobs, { limit: 9, sort: asked });
  page(jobs, { limit: 9, sort: ['-metadata.annotations.example\\\\.org/rank'], where: { 'metadata.annotations.example\\\\.org/rank': { not: [1, 2] }, 'status.active': 3 } });
  counts(pods, ['status.phase'], { where: { 'spec.priorityOf': true } });
  counts(pods, ['$requests.cpu', 'spec.nodeName']);
  function show<T extends KubeObject & { readonly status?: { readonly phase?: string } }>(kind: Resource<T>, more: PageQuery<T, readonly string[]>) {
    kc.watch(kind, { where: { 'status.phase': 'Running', 'spec.any': { not: '' } }, fields: ['status.phase'] as string[] });
    kc.follow(page(kind, { limit: 9, sort: ['-status.phase'], where: { 'status.phase': 'Running' } }));
    kc.follow(page(kind, more));
    return kc.follow(counts(kind, ['status.phase'] as string[], { where: { 'status.phase': 'Running' } }));
  }
  show(pods, { limit: 9 });
  const where: { readonly [path: string]: string } = {};
  kc.watch(jobs, { where });
  `;
  expect(complaints(any)).toEqual([]);
  expect(complaints("kc.watch(jobs, { where: { 'status.active': ['1'] } });")).toHaveLength(1);
  expect(complaints("page(jobs, { limit: 9, sort: 'status.active' });")).toHaveLength(1);
});

test('a type that refers to itself in many ways is not too much for the compiler', () => {
  const many = `
  interface Schema { readonly type?: string; ${Array.from({ length: 20 }, (_, n) => `readonly s${n}?: Schema`).join('; ')} }
  interface Kind extends KubeObject { readonly spec?: Schema }
  declare const kinds: Resource<Kind>;
  kc.watch(kinds, { fields: ['spec.s1.s2.type'], where: { 'spec.s1.s2.type': 'x' } });
  kc.follow(page(kinds, { limit: 9, sort: ['-spec.s1.type'] }));
  `;
  expect(complaints(many)).toEqual([]);
  expect(offered(`${many} page(kinds, { limit: 9, sort: ['|'] });`)).toContain('-spec.type');
});
