// The code of docs/guides as modules: `guide:vue/Job.vue` is the block of the guide to Vue that is called so. Blocks of a guide find each other as files of one
// folder would.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import type { Plugin } from 'vite';

const folder = join(import.meta.dirname, '../../../docs/guides');
/** Where they seem to stand, so that packages are found. */
const place = join(import.meta.dirname, 'guide');

/** Of what is not here. */
const standins: Record<string, string> = { 'next/headers': 'next-headers.ts', 'expo/fetch': 'expo-fetch.ts', 'react-native': 'react-native.ts' };

/** What all of them import, as `kubecast types` would write it; see cli/types.test.ts, which compiles that. */
export const kubernetes = `
import { defineResource, type KubeObject } from '@kubecast/sdk';
export interface Job extends KubeObject { readonly status?: { readonly active?: number; readonly succeeded?: number } }
export interface Pod extends KubeObject { readonly status?: { readonly phase?: string } }
export const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
export const pods = defineResource<Pod>()({ version: 'v1', plural: 'pods' });
`;

/** By guide and name, as `vue/Job.vue`; those of the SDK's own page as `readme/pasted.ts`. A block without a name is a text, such as a configuration. */
export const blocks: ReadonlyMap<string, string> = new Map(
  [...readdirSync(folder).map((name): [string, string] => [name.replace(/\.md$/, ''), join(folder, name)]), ['readme', join(import.meta.dirname, '../README.md')] as const]
    .filter(([, file]) => file.endsWith('.md'))
    .flatMap(([guide, file]) => {
      const text = readFileSync(file, 'utf8');
      const found = [...text.matchAll(/^```(\w+) \[(.+)\]\n([^]*?)^```$/gm)].map(([, , name = '', code = '']): [string, string] => [`${guide}/${name}`, code]);
      return found.some(([, code]) => code.includes('/kubernetes.ts')) ? [...found, [`${guide}/kubernetes.ts`, kubernetes] as [string, string]] : found;
    }),
);

export function guides(): Plugin {
  const at = (key: string): string | undefined => (blocks.has(key) ? join(place, key) : undefined);
  return {
    name: 'guides',
    enforce: 'pre',
    resolveId(id, importer) {
      const standin = standins[id];
      if (standin) return join(import.meta.dirname, 'standins', standin);
      if (id.startsWith('guide:')) return at(id.slice('guide:'.length));
      if (!importer?.startsWith(place) || !id.startsWith('.')) return undefined;
      return at(posix.join(dirname(importer.slice(place.length + 1)), id));
    },
    load: (id) => (id.startsWith(`${place}/`) ? blocks.get(id.slice(place.length + 1)) : undefined),
  };
}
