// The packed package in a team's hands: how it is packed, and the strictest rules by which others compile it.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const web = fileURLToPath(new URL('../..', import.meta.url));
/** A part of what `npm run build` makes, and the last of it. */
export const built = join(web, 'sdk/dist/testing/index.js');

export const manifest = JSON.parse(readFileSync(join(web, 'sdk/package.json'), 'utf8')) as { name: string; version: string; exports: Record<string, unknown> };
export const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json');

/** What the program prints. Throws if it fails. */
export function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 240_000, env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' } });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? status}\n${stdout}${stderr}`);
  return stdout;
}

/** Packs what is built, and returns the file. */
export function pack(to: string, ...args: readonly string[]): string {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', to, ...args], join(web, 'sdk'))) as [{ filename: string }];
  return join(to, filename);
}

/** The README's first page, and the types that it imports, are written into a project that has the package. */
export async function writePage(app: string): Promise<void> {
  run(join(app, 'node_modules/.bin/kubecast'), ['types', '--from', join(web, 'sdk/cli/fixtures'), '--kinds', 'jobs.batch', '--out', 'kubernetes.ts'], app);
  const [, page = ''] = /```tsx\n([^]*?)```/.exec(readFileSync(join(app, 'node_modules/@kubecast/sdk', 'README.md'), 'utf8')) ?? [];
  await writeFile(join(app, 'page.tsx'), page);
}

/** The frameworks' own declarations do not pass where those of libraries are checked; ours do. */
export const strictest = [
  { moduleResolution: 'bundler', module: 'ESNext', skipLibCheck: true, files: ['page.tsx', 'all.ts'] },
  { moduleResolution: 'nodenext', module: 'NodeNext', skipLibCheck: false, files: ['own.ts', 'required.cts'] },
] as const;

/** What the project's compiler says of the page and of each entry. */
export async function compile(app: string, { files, ...more }: (typeof strictest)[number]): Promise<string> {
  const exported = (names: readonly string[]): string => names.map((name, n) => `export * as e${n} from '@kubecast/sdk${name.slice(1)}';\n`).join('');
  await writeFile(join(app, 'all.ts'), exported(entries));
  await writeFile(join(app, 'required.cts'), "import sdk = require('@kubecast/sdk');\nexport const kc: sdk.Kubecast = sdk.createKubecast();\n");
  await writeFile(join(app, 'own.ts'), exported(['.', './testing', './conformance']));
  const compilerOptions = {
    ...more,
    target: 'ES2023',
    lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
    types: ['node'],
    jsx: 'react-jsx',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  };
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  return run(process.execPath, [join(app, 'node_modules/typescript/bin/tsc'), '-p', '.'], app);
}
