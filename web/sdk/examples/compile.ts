// Compiles the examples' components as the frameworks' own plugins would, with nothing but their compilers.

import { transformAsync } from '@babel/core';
import solid from 'babel-preset-solid';
import { compile } from 'svelte/compiler';
import ts from 'typescript';
import type { Plugin } from 'vite';
import { compileScript, parse } from 'vue/compiler-sfc';

export function components({ server = false } = {}): Plugin {
  return {
    name: 'components',
    enforce: 'pre',
    async transform(source, file) {
      if (file.endsWith('.svelte')) return { code: compile(source, { filename: file, generate: server ? 'server' : 'client' }).js.code, map: null };
      if (file.endsWith('.vue')) {
        const { descriptor } = parse(source, { filename: file });
        return { code: withoutTypes(compileScript(descriptor, { id: file, inlineTemplate: true }).content), map: null };
      }
      if (file.endsWith('.tsx') && source.includes("from 'solid-js")) {
        const done = await transformAsync(withoutTypes(source), { presets: [[solid, { generate: server ? 'ssr' : 'dom' }]], configFile: false, babelrc: false });
        return done?.code ? { code: done.code, map: null } : undefined;
      }
      return undefined;
    },
  };
}

/** Elements stay as they are. */
const withoutTypes = (source: string): string =>
  ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, jsx: ts.JsxEmit.Preserve, verbatimModuleSyntax: true }, fileName: 'a.tsx' }).outputText;
