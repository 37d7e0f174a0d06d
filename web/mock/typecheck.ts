// What the compiler, at its strictest, says of a program of a team that uses the SDK.

import { resolve } from 'node:path';
import ts from 'typescript';

const here = import.meta.dirname;
/** Those of the compiler and the SDK, which are the same each time. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** How such a team compiles. */
export const strictest: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  customConditions: ['kubecast-source'],
  lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.dom.asynciterable.d.ts'],
  types: [],
  jsx: ts.JsxEmit.ReactJSX,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: false,
  allowImportingTsExtensions: true,
  noEmit: true,
  skipLibCheck: true,
};

/** By file name; they see the SDK and each other. Of each complaint the file, the line and the words. */
export function complaintsOf(files: Readonly<Record<string, string>>): string[] {
  const texts = new Map(Object.entries(files).map(([name, text]) => [resolve(here, name), text]));
  const host = ts.createCompilerHost(strictest);
  const disk = { ...host };
  host.fileExists = (name) => texts.has(name) || disk.fileExists(name);
  host.directoryExists = (name) => [...texts.keys()].some((text) => text.startsWith(`${name}/`)) || disk.directoryExists?.(name) !== false;
  host.readFile = (name) => texts.get(name) ?? disk.readFile(name);
  host.getSourceFile = (name, version, ...rest) => {
    const text = texts.get(name);
    if (text !== undefined) return ts.createSourceFile(name, text, version);
    if (!parsed.has(name)) parsed.set(name, disk.getSourceFile(name, version, ...rest));
    return parsed.get(name);
  };
  const program = ts.createProgram([...texts.keys()], strictest, host);
  // The SDK itself is compiled elsewhere, by its own rules.
  const own = program.getSourceFiles().filter(({ fileName }) => texts.has(fileName));
  const found = [...program.getGlobalDiagnostics(), ...own.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])];
  return found.map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0;
    return `${file?.fileName.slice(here.length + 1) ?? ''}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}
