// Compiles the examples' components as the frameworks' own plugins would, with nothing but their compilers.

import { compile } from 'svelte/compiler';
import type { Plugin } from 'vite';
import { compileScript, parse } from 'vue/compiler-sfc';

export function components({ server = false } = {}): Plugin {
  return {
    name: 'components',
    transform(source, file) {
      if (file.endsWith('.svelte')) return { code: compile(source, { filename: file, generate: server ? 'server' : 'client' }).js.code, map: null };
      if (file.endsWith('.vue')) {
        const { descriptor } = parse(source, { filename: file });
        return { code: compileScript(descriptor, { id: file, inlineTemplate: true }).content, map: null };
      }
      return undefined;
    },
  };
}
